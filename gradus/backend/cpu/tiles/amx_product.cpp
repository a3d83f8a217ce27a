/// Row panels of a go past a packed block of b, in sequence. In a long row panel as many k as stay in the first-level
/// cache meet all panels of b before the next ones do; the sums wait in f32, which changes no bit of them.
#include "gradus/backend/cpu/tiles/amx_product.h"
#include <algorithm>
#include <cstring>
#include <vector>
#include "gradus/backend/cpu/tiles/pack.h"

namespace gradus::cpu_backend {
namespace {

/// The tiles of this thread while an object of this class lives: of sums and of a, `height` rows in all.
class ConfiguredTiles {
 public:
  ConfiguredTiles(const TileTable& table, std::int64_t height) : table_(table) {
    AmxConfiguration shapes;
    const auto set = [&](int tile, std::int64_t rows) {
      if (rows <= 0) return;  // a tile that is not used has no columns either
      shapes.rows[tile] = static_cast<std::uint8_t>(rows);
      shapes.row_bytes[tile] = AmxTiles::row_bytes;
    };
    for (int i = 0; i < AmxTiles::most; ++i) {
      const std::int64_t rows = std::min(AmxTiles::rows, height - i * AmxTiles::rows);
      set(AmxTiles::a(i), rows);
      set(AmxTiles::b(i), AmxTiles::steps);
      for (int j = 0; j < AmxTiles::most; ++j) set(AmxTiles::sum(i, j), rows);
    }
    table_.configure_amx(&shapes);
  }
  ~ConfiguredTiles() { table_.release_amx(); }
  ConfiguredTiles(const ConfiguredTiles&) = delete;
  ConfiguredTiles& operator=(const ConfiguredTiles&) = delete;

 private:
  const TileTable& table_;
};

class AmxDriver {
 public:
  AmxDriver(const Plan& plan, const void* a, const void* b, void* c, void* scratch, const Epilogue& epilogue)
      : plan_(plan),
        at_(plan.scratch()),
        p_(plan.product),
        epilogue_(epilogue),
        a_(static_cast<const char*>(plan.swapped ? b : a)),
        b_(static_cast<const char*>(plan.swapped ? a : b)),
        c_(static_cast<char*>(c)),
        packed_b_(static_cast<char*>(scratch) + at_.packed_b),
        packed_a_(static_cast<char*>(scratch) + at_.packed_a),
        sums_(static_cast<char*>(scratch) + at_.sums),
        tail_(static_cast<char*>(scratch) + at_.tail),
        piece_(static_cast<char*>(scratch) + at_.piece),
        c_row_(plan.has_pieces() ? plan.piece_pitch_bytes() : p_.c_row * plan.element),
        packer_(plan, nullptr),
        tiles_(*plan.table, plan.height()),
        multiply_(plan.table->amx[plan.height() > AmxTiles::rows]),
        round_(plan.round()),
        kept_(static_cast<char*>(scratch) + at_.kept) {}

  void run(const Range& range) {
    if (range.outer != outer_ && plan_.keep_a) std::memset(kept_, 0, static_cast<std::size_t>(plan_.kept_bytes()));
    outer_ = range.outer;
    first_column_ = range.column_block * plan_.block;
    columns_ = std::min(plan_.block, p_.n - first_column_);
    packer_.pack_b(b_ + (range.outer * p_.b_batch + first_column_ * p_.b_column) * plan_.element, columns_, p_.k,
                   packed_b_);
    for (std::int64_t i = range.begin; i < range.end; ++i)
      row_panel(range.outer + i / plan_.row_panels, i % plan_.row_panels);
  }

 private:
  std::int64_t tiles_of_k() const { return divide_up(p_.k, AmxTiles::k); }

  /// A row panel whose turn it is, as its tiles see it.
  struct Rows {
    const char* a;
    std::int64_t a_row;
    std::int64_t above;  // rows that are another panel's
    std::int64_t count;
    char* c;             // of the first column of the block
    std::int64_t whole;  // tiles along k that a has; if one more is needed, it is the tail
  };

  Rows rows_of(std::int64_t batch, std::int64_t panel) {
    const std::int64_t row = plan_.first_row(panel), count = plan_.rows(panel);
    const char* const place = a_ + (batch * p_.a_batch + row * p_.a_row) * plan_.element;
    char* const c =
        plan_.has_pieces() ? piece_ : c_ + (batch * p_.c_batch + row * p_.c_row + first_column_) * plan_.element;
    if (plan_.pack_a) return {packed_a(place, panel), plan_.a_pitch_bytes(), 0, count, c, tiles_of_k()};
    const std::int64_t a_row = p_.a_row * plan_.element, above = plan_.height() - count;
    return {place - above * a_row, a_row, above, count, c, p_.k / AmxTiles::k};
  }

  void row_panel(std::int64_t batch, std::int64_t panel) {
    const Rows rows = rows_of(batch, panel);
    if (p_.k == 0) clear(rows);
    else compute(rows);
    if (p_.is_followed)
      epilogue_.run(epilogue_.state,
                    plan_.piece(rows.c, batch, plan_.first_row(panel), rows.count, first_column_, columns_));
  }

  void compute(const Rows& rows) {
    const std::int64_t tiles = tiles_of_k(), at_once = plan_.amx_depth() / AmxTiles::k;
    if (rows.whole < tiles) pack_tail(rows);
    for (std::int64_t tile = 0; tile < tiles; tile += at_once) {
      const std::int64_t past = std::min(tile + at_once, tiles);
      for (std::int64_t j = 0; j < columns_; j += plan_.width) {
        multiply(rows, j, tile, past);
        if (past == tiles) store(rows, j);
      }
    }
  }

  /// Tiles [tile, past) along k.
  void multiply(const Rows& rows, std::int64_t j, std::int64_t tile, std::int64_t past) const {
    const std::int64_t b_step = plan_.width * plan_.size, b_tile = AmxTiles::steps * b_step;
    const char* const b = packed_b_ + j / plan_.width * plan_.b_panel_bytes();
    AmxRun runs[2];
    std::int64_t count = 0;
    if (tile < rows.whole)
      runs[count++] = {.a = rows.a + tile * AmxTiles::row_bytes,
                       .b = b + tile * b_tile,
                       .a_row = rows.a_row,
                       .b_step = b_step,
                       .tiles = std::min(past, rows.whole) - tile};
    if (past > rows.whole)
      runs[count++] = {
          .a = tail_, .b = b + rows.whole * b_tile, .a_row = AmxTiles::row_bytes, .b_step = b_step, .tiles = 1};
    multiply_[columns_ - j > AmxTiles::columns](runs, count, sums_of(j), tile > 0);
  }

  /// Sums that wait have a place for each panel of b.
  float* sums_of(std::int64_t j) const {
    const std::int64_t number = plan_.amx_depth() < p_.k ? j / plan_.width : 0;
    return reinterpret_cast<float*>(sums_ + number * plan_.sums_panel_bytes());
  }

  void store(const Rows& rows, std::int64_t j) const {
    const std::int64_t columns = std::min(plan_.width, columns_ - j);
    const std::int64_t tiles = columns > AmxTiles::columns ? 2 : 1;
    const PackShape shape{.rows = rows.count,
                          .columns = columns,
                          .source_row = tiles * AmxTiles::row_bytes,
                          .target_row = c_row_,
                          .panel = 0};
    const float* const first = sums_of(j) + rows.above * tiles * AmxTiles::columns;
    char* const c = rows.c + j * plan_.element;
    round_(first, c, &shape);
  }

  const char* packed_a(const char* place, std::int64_t panel) {
    const auto number = static_cast<std::size_t>(plan_.keep_a ? panel : 0);
    char* const target = packed_a_ + static_cast<std::int64_t>(number) * plan_.a_group_bytes();
    if (plan_.keep_a && kept_[number]) return target;
    packer_.pack_a(place, plan_.rows(panel), p_.k, target);
    if (plan_.keep_a) kept_[number] = 1;
    return target;
  }

  /// Rows of the remaining k, with zeros to the end of a tile's row.
  void pack_tail(const Rows& rows) const {
    const char* const source = rows.a + rows.whole * AmxTiles::row_bytes;
    std::memset(tail_, 0, static_cast<std::size_t>(plan_.tail_bytes()));
    for (std::int64_t row = 0; row < plan_.height(); ++row)
      std::memcpy(tail_ + row * AmxTiles::row_bytes, source + row * rows.a_row,
                  static_cast<std::size_t>(p_.k % AmxTiles::k * plan_.element));
  }

  void clear(const Rows& rows) const {
    for (std::int64_t row = 0; row < rows.count; ++row)
      std::memset(rows.c + row * c_row_, 0, static_cast<std::size_t>(columns_ * plan_.element));
  }

  const Plan& plan_;
  const Plan::Scratch at_;
  const Product& p_;
  const Epilogue& epilogue_;
  const char *a_, *b_;
  char *c_, *packed_b_, *packed_a_, *sums_, *tail_, *piece_;
  const std::int64_t c_row_;  // bytes
  const Packer packer_;
  const ConfiguredTiles tiles_;
  const AmxFunction* multiply_;  // by tiles of columns - 1
  PackFunction round_;
  std::int64_t outer_ = -1, first_column_ = 0, columns_ = 0;
  char* const kept_;  // row panels of a that are packed
};

}  // namespace

void run_amx(const Plan& plan, const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end,
             void* scratch, const Epilogue& epilogue) {
  AmxDriver driver(plan, a, b, c, scratch, epilogue);
  for (Range range{}; begin < end; begin += range.end - range.begin) {
    range = plan.range_of(begin, end);
    driver.run(range);
  }
}

}  // namespace gradus::cpu_backend
