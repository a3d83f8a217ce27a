/// Past a packed block of b go row panels of a, one after the other. Of a long row panel as many k as stay in the
/// first-level cache meet all panels of b before the next ones do; the sums wait in f32, which changes no bit of them.
#include "gradus/backend/cpu/tiles/amx_product.h"
#include <algorithm>
#include <cstring>
#include <vector>
#include "gradus/backend/cpu/tiles/pack.h"

namespace gradus::cpu_backend {
namespace {

/// The tiles of this thread while an object of this class lives: of sums and of a, so many rows in all.
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
  AmxDriver(const Plan& plan, const void* a, const void* b, void* c, void* scratch)
      : plan_(plan),
        p_(plan.product),
        a_(static_cast<const char*>(plan.swapped ? b : a)),
        b_(static_cast<const char*>(plan.swapped ? a : b)),
        c_(static_cast<char*>(c)),
        packed_b_(static_cast<char*>(scratch)),
        packed_a_(packed_b_ + plan.packed_b_bytes()),
        sums_(packed_a_ + plan.packed_a_bytes()),
        tail_(sums_ + plan.sums_bytes()),
        packer_(plan, nullptr),
        tiles_(*plan.table, plan.height()),
        multiply_(plan.table->amx[plan.height() > AmxTiles::rows]),
        round_(p_.pair_tiles ? plan.table->round_pairs : plan.table->round) {
    if (plan.keep_a) kept_.resize(static_cast<std::size_t>(plan.row_panels));
  }

  void run(const Range& range) {
    if (range.outer != outer_) kept_.assign(kept_.size(), false);
    outer_ = range.outer;
    first_column_ = range.column_block * plan_.block;
    columns_ = std::min(plan_.block, p_.n - first_column_);
    packer_.pack_b(b_ + (range.outer * p_.b_batch + first_column_ * p_.b_column) * plan_.element, columns_, p_.k,
                   packed_b_);
    for (std::int64_t i = range.begin; i < range.end; ++i)
      row_panel(range.outer + i / plan_.row_panels, i % plan_.row_panels);
  }

 private:
  static constexpr std::int64_t tile_k = 2 * AmxTiles::steps;

  void row_panel(std::int64_t batch, std::int64_t panel) {
    const std::int64_t row = plan_.first_row(panel), rows = plan_.rows(panel);
    char* const c = c_ + (batch * p_.c_batch + row * p_.c_row + first_column_) * plan_.element;
    if (p_.k == 0) return clear(c, rows);
    const char* const place = a_ + (batch * p_.a_batch + row * p_.a_row) * plan_.element;
    const std::int64_t above = plan_.pack_a ? 0 : plan_.height() - rows;  // rows that are another panel's
    const std::int64_t a_row = plan_.pack_a ? plan_.a_pitch_bytes() : p_.a_row * plan_.element;
    const char* const a = plan_.pack_a ? packed_a(place, panel) : place - above * a_row;
    const std::int64_t whole = plan_.pack_a ? plan_.steps(p_.k) / AmxTiles::steps : p_.k / tile_k;
    const std::int64_t tiles = divide_up(p_.k, tile_k), tiles_at_once = plan_.amx_depth() / tile_k;
    if (whole < tiles) pack_tail(a + whole * AmxTiles::row_bytes, a_row);
    for (std::int64_t tile = 0; tile < tiles; tile += tiles_at_once) {
      const std::int64_t past = std::min(tile + tiles_at_once, tiles);
      for (std::int64_t j = 0; j < columns_; j += plan_.width) {
        const std::int64_t b_step = plan_.width * plan_.size;
        const char* const b = packed_b_ + j / plan_.width * plan_.b_panel_bytes();
        AmxRun runs[2];
        std::int64_t count = 0;
        if (tile < whole)
          runs[count++] = {.a = a + tile * AmxTiles::row_bytes,
                           .b = b + tile * AmxTiles::steps * b_step,
                           .a_row = a_row,
                           .b_step = b_step,
                           .tiles = std::min(past, whole) - tile};
        if (past > whole)
          runs[count++] = {.a = tail_,
                           .b = b + whole * AmxTiles::steps * b_step,
                           .a_row = AmxTiles::row_bytes,
                           .b_step = b_step,
                           .tiles = 1};
        float* const sums = sums_of(j);
        multiply_[columns_ - j > AmxTiles::columns](runs, count, sums, tile > 0);
        if (past == tiles) round(sums, above, rows, j, c);
      }
    }
  }

  /// Sums that wait have a place for each panel of b.
  float* sums_of(std::int64_t j) const {
    const std::int64_t number = plan_.amx_depth() < p_.k ? j / plan_.width : 0;
    return reinterpret_cast<float*>(sums_ + number * plan_.sums_panel_bytes());
  }

  void round(const float* sums, std::int64_t above, std::int64_t rows, std::int64_t j, char* c) const {
    const std::int64_t columns = std::min(plan_.width, columns_ - j);
    const std::int64_t tiles = columns > AmxTiles::columns ? 2 : 1;
    const PackShape shape{.rows = rows,
                          .columns = columns,
                          .source_row = tiles * AmxTiles::row_bytes,
                          .target_row = p_.c_row * plan_.element,
                          .panel = 0};
    round_(sums + above * tiles * AmxTiles::columns, c + j * plan_.element, &shape);
  }

  const char* packed_a(const char* place, std::int64_t panel) {
    const auto number = static_cast<std::size_t>(plan_.keep_a ? panel : 0);
    char* const target = packed_a_ + static_cast<std::int64_t>(number) * plan_.a_group_bytes();
    if (plan_.keep_a && kept_[number]) return target;
    packer_.pack_a(place, plan_.rows(panel), p_.k, target);
    if (plan_.keep_a) kept_[number] = true;
    return target;
  }

  /// Rows of what is left of k, with zeros to the end of a tile's row.
  void pack_tail(const char* source, std::int64_t a_row) const {
    const auto bytes = static_cast<std::size_t>(p_.k % tile_k * plan_.element);
    std::memset(tail_, 0, static_cast<std::size_t>(plan_.tail_bytes()));
    for (std::int64_t row = 0; row < plan_.height(); ++row)
      std::memcpy(tail_ + row * AmxTiles::row_bytes, source + row * a_row, bytes);
  }

  void clear(char* c, std::int64_t rows) const {
    for (std::int64_t row = 0; row < rows; ++row)
      std::memset(c + row * p_.c_row * plan_.element, 0, static_cast<std::size_t>(columns_ * plan_.element));
  }

  const Plan& plan_;
  const Product& p_;
  const char *a_, *b_;
  char *c_, *packed_b_, *packed_a_, *sums_, *tail_;
  const Packer packer_;
  const ConfiguredTiles tiles_;
  const AmxFunction* multiply_;  // by tiles of columns - 1
  PackFunction round_;
  std::int64_t outer_ = -1, first_column_ = 0, columns_ = 0;
  std::vector<bool> kept_;  // row panels of a that are packed
};

}  // namespace

void run_amx(const Plan& plan, const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end,
             void* scratch) {
  AmxDriver driver(plan, a, b, c, scratch);
  for (Range range{}; begin < end; begin += range.end - range.begin) {
    range = plan.range_of(begin, end);
    driver.run(range);
  }
}

}  // namespace gradus::cpu_backend
