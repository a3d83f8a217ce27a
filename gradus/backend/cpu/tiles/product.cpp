/// The drivers: they walk over a plan's blocks, pack operands where needed, and call tiles.
#include "gradus/backend/cpu/tiles/product.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>
#include "gradus/backend/cpu/tiles/amx_product.h"
#include "gradus/backend/cpu/tiles/pack.h"
#include "gradus/backend/cpu/tiles/plan.h"
#include "gradus/base/divide.h"
#include "gradus/base/share.h"

namespace gradus::cpu_backend {
namespace {

using Bytes = const char*;

constexpr std::int64_t line_bytes = 64;
constexpr std::int64_t rows_ahead = 6;  // of b, while it is copied: rows a power of two apart fall into one set

/// Lines that are fetched from far away while tiles are at work, one a turn: columns of lines, or one long row.
class LinesWanted {
 public:
  LinesWanted() = default;
  /// `rows` rows, `apart` bytes from one to the next, of `bytes` bytes each, for tiles of `turns` turns.
  LinesWanted(Bytes begin, std::int64_t rows, std::int64_t bytes, std::int64_t apart, std::int64_t turns)
      : begin_(begin), step_(apart), lines_(rows), columns_(divide_up(bytes, line_bytes)) {
    if (apart <= 2 * bytes) step_ = line_bytes, lines_ = divide_up(rows * apart, line_bytes), columns_ = 1;
    else if (rows < turns) columns_ = 0;  // most lines that a tile fetched would be unused
  }
  bool any() const { return column_ < columns_; }
  /// The lines that tiles of `turns` turns fetch.
  void take(std::int64_t turns, TileShape& shape) {
    shape.later = begin_ + column_ * line_bytes + line_ * step_, shape.later_step = step_;
    line_ += turns;
    if (line_ >= lines_) line_ = 0, ++column_;
  }

 private:
  Bytes begin_ = nullptr;
  std::int64_t step_ = 0, lines_ = 0, columns_ = 0, line_ = 0, column_ = 0;
};

/// Ranges of units, in order.
class Driver {
 public:
  Driver(const Plan& plan, const void* a, const void* b, void* c, void* scratch, const Epilogue& epilogue, Share* share)
      : plan_(plan),
        at_(plan.scratch()),
        p_(plan.product),
        epilogue_(epilogue),
        share_(share),
        a_(static_cast<Bytes>(plan.swapped ? b : a)),
        b_(static_cast<Bytes>(plan.swapped ? a : b)),
        c_(static_cast<char*>(c)),
        packed_b_(static_cast<char*>(scratch) + at_.packed_b),
        packed_a_(static_cast<char*>(scratch) + at_.packed_a),
        sums_(static_cast<char*>(scratch) + at_.sums),
        piece_(static_cast<char*>(scratch) + at_.piece),
        c_row_(plan.has_pieces() ? plan.piece_pitch_bytes() : p_.c_row * plan.c_element),
        packer_(plan, static_cast<char*>(scratch) + at_.pairs),
        round_(plan.round()),
        tiles_(plan.table->tiles[plan.form == Form::pairs     ? (p_.wide ? TileTable::wide_pairs : TileTable::pairs)
                                 : plan.form == Form::widened ? TileTable::kind_of(f32)
                                                              : TileTable::kind_of(p_.dtype)]),
        kept_(static_cast<char*>(scratch) + at_.kept) {}

  /// Row panels [begin, end), counted over the inner batch, of a block of columns; `next` is the range after it.
  /// `passes`: the number of pauses reached. With a share those that it offers, from `begin` on, until they are done.
  void run(const Range& range, const Range* next, std::int64_t passes = 0) {
    const auto [outer, column_block, begin, end] = range;
    if (outer != outer_ && plan_.keep_a) std::memset(kept_, 0, static_cast<std::size_t>(plan_.kept_bytes()));
    outer_ = outer;
    first_column_ = column_block * plan_.block;
    columns_ = std::min(plan_.block, p_.n - first_column_);
    b_block_ = block_of_b(outer, column_block);
    const std::int64_t first_unit = share_ ? share_->now().begin : 0;
    for (step_ = passes * plan_.depth; step_ < p_.k; step_ += plan_.depth) {
      depth_ = std::min(plan_.depth, p_.k - step_);
      set_strides();
      first_ = true;
      for (std::int64_t i = begin;; first_ = false) {
        const std::int64_t panel = i % plan_.row_panels, left = share_ ? share_->now().count() : end - i;
        const std::int64_t taken = left > 0 ? take(residents(panel, left), left) : 0;
        if (taken == 0) break;
        if (first_ && packs_blocks()) packer_.pack_b(source_of_b(0), columns_, depth_, packed_b_), first_ = false;
        const std::int64_t past = i + taken;
        want_a(outer + past / plan_.row_panels, past % plan_.row_panels, left - taken);
        if (taken == left) want_next_b(next);
        row_panels(outer + i / plan_.row_panels, panel, panel + taken);
        i = past;
      }
      if (share_ && step_ + depth_ < p_.k) share_->next_pass(first_unit);
    }
    if (p_.k == 0 && !p_.resume) clear(outer, begin, end);
  }

 private:
  void set_strides() {
    const bool by_rows = plan_.packed_a_by_rows();
    const std::int64_t pitch = plan_.a_pitch_bytes();
    shape_.k = plan_.steps(depth_);
    turns_ = shape_.k / steps_at_once;
    if (plan_.pack_a) shape_.a_row = by_rows ? pitch : plan_.size, shape_.a_step = by_rows ? plan_.size : pitch;
    else
      shape_.a_row = p_.a_row * plan_.element,
      shape_.a_step = plan_.form == Form::pairs ? plan_.size : p_.a_column * plan_.element;
    shape_.b_step = plan_.pack_b ? plan_.width * plan_.size : p_.b_row * plan_.element;
    shape_.c_row = plan_.rounds() ? plan_.width * plan_.size : c_row_;
  }

  /// The number of the next of `left` panels, at most `most`. Towards the end of the last pass they are fewer, so that
  /// others can take over some.
  std::int64_t take(std::int64_t most, std::int64_t left) {
    if (!share_) return most;
    return share_->take(share_->now().passes_left > 0 ? most : std::min(most, divide_up(left, 2))).count();
  }

  Bytes block_of_b(std::int64_t outer, std::int64_t column_block) const {
    return b_ + (outer * p_.b_batch + column_block * plan_.block * p_.b_column) * plan_.element;
  }

  /// How many panels pass by a panel of b together, of `left` from `panel` on.
  std::int64_t residents(std::int64_t panel, std::int64_t left) const {
    return std::min({plan_.resident, plan_.row_panels - panel, left});
  }

  Bytes source_of_b(std::int64_t j) const { return b_block_ + (step_ * p_.b_row + j * p_.b_column) * plan_.element; }
  char* panel_of_b(std::int64_t j) const { return packed_b_ + j / plan_.width * plan_.b_panel_bytes(); }

  /// True if b is packed a block at a time. Otherwise a panel is packed when the first rows meet it, while the lines of
  /// the next one are on their way; short chains have too few steps to fetch that many short rows.
  bool packs_blocks() const { return plan_.pack_b && p_.b_column == 1 && !plan_.is_deep && !may_copy_b(); }
  void want_next_b(const Range* next) {
    if (!plan_.pack_b || packs_blocks() || turns_ == 0) return;
    if (step_ + depth_ < p_.k)
      want_b(b_block_ + (step_ + depth_) * p_.b_row * plan_.element, std::min(plan_.depth, p_.k - step_ - depth_));
    else if (next) want_b(block_of_b(next->outer, next->column_block), std::min(plan_.depth, p_.k));
  }
  void want_b(Bytes source, std::int64_t k) {
    if (p_.b_column == 1) b_wanted_ = {source, k, plan_.width * plan_.element, p_.b_row * plan_.element, turns_};
    else b_wanted_ = {source, plan_.width, k * plan_.element, p_.b_column * plan_.element, turns_};
  }

  /// The rows whose turn is next, if they have not been packed.
  void want_a(std::int64_t batch, std::int64_t panel, std::int64_t left) {
    a_wanted_ = {};
    if (left <= 0 || turns_ == 0 || (plan_.keep_a && kept_[kept_at(panel / plan_.group)])) return;
    const Bytes begin = place_of_a(batch, panel);
    const std::int64_t rows = plan_.first_row(panel + residents(panel, left)) - plan_.first_row(panel);
    if (p_.a_column == 1) a_wanted_ = {begin, rows, depth_ * plan_.element, p_.a_row * plan_.element, turns_};
    else a_wanted_ = {begin, depth_, rows * plan_.element, p_.a_column * plan_.element, turns_};
  }

  /// The place of a panel of a in place.
  Bytes place_of_a(std::int64_t batch, std::int64_t panel) const {
    return a_ + (batch * p_.a_batch + plan_.first_row(panel) * p_.a_row + step_ * p_.a_column) * plan_.element;
  }

  /// A row panel whose turn it is.
  struct Rows {
    Bytes a;
    char* c;  // of the first column of the block
    std::int64_t count;
  };

  /// Panels of one matrix, no more than pass by one panel of b.
  void row_panels(std::int64_t batch, std::int64_t begin, std::int64_t end) {
    first_row_ = plan_.first_row(begin);
    compute(batch, begin, end);
    if (p_.is_followed && step_ + depth_ == p_.k) follow(batch, begin, end);
  }
  void follow(std::int64_t batch, std::int64_t begin, std::int64_t end) {
    const std::int64_t row = plan_.first_row(begin);
    first_row_ = row;
    epilogue_.run(epilogue_.state,
                  plan_.piece(c_of(batch, row), batch, row, plan_.first_row(end) - row, first_column_, columns_));
  }

  void compute(std::int64_t batch, std::int64_t begin, std::int64_t end) {
    if (plan_.pack_a) pack_a(batch, begin, end);
    for (std::int64_t panel = begin; panel < end; ++panel)
      rows_[static_cast<std::size_t>(panel - begin)] = {a_of(batch, panel, begin), c_of(batch, plan_.first_row(panel)),
                                                        plan_.rows(panel)};
    const std::span<const Rows> together(rows_.data(), static_cast<std::size_t>(end - begin));
    const std::int64_t panel_bytes = plan_.width * plan_.size;  // of a row
    const std::int64_t right = step_ > 0 && !plan_.rounds() ? panel_bytes : 0;
    shape_.b_ahead = steps_ahead * shape_.b_step;
    if (!plan_.is_deep) {
      shape_.next = right;
      for (const Rows& rows : together)
        for (std::int64_t j = 0; j < columns_; j += plan_.width) {
          const bool last = j + plan_.width >= columns_;  // then other rows follow, and the first columns
          if (plan_.wide) shape_.b_ahead = wide_steps_ahead * shape_.b_step;
          else if (!plan_.pack_b) shape_.b_ahead = last ? -(j / plan_.width * panel_bytes) : panel_bytes;
          if (plan_.pack_b && first_ && &rows == together.data()) first_tile(rows, j);
          else tile(rows, plan_.pack_b ? panel_of_b(j) : source_of_b(j), j);
        }
      return;
    }
    for (std::int64_t j = 0; j < columns_; j += plan_.width) {
      for (const Rows& rows : together) {
        const bool last = &rows == &together.back();  // then the next columns follow
        shape_.next = right == 0 ? 0 : last ? right + together.front().c - rows.c : rows.count * shape_.c_row;
        if (first_ && &rows == together.data()) first_tile(rows, j);
        else tile(rows, panel_of_b(j), j);
      }
    }
  }

  void pack_a(std::int64_t batch, std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin / plan_.group; group * plan_.group < end; ++group) {
      if (plan_.keep_a && kept_[kept_at(group)]) continue;
      const std::int64_t first = first_of(group, begin);
      const std::int64_t past = std::min((group + 1) * plan_.group, plan_.keep_a ? plan_.row_panels : end);
      packer_.pack_a(place_of_a(batch, first), plan_.first_row(past) - plan_.first_row(first), depth_,
                     place(group, begin));
      if (plan_.keep_a) kept_[kept_at(group)] = 1;
    }
  }
  /// The first panel of a group that was packed while panels from `begin` on passed by, and where it lies.
  std::int64_t first_of(std::int64_t group, std::int64_t begin) const {
    return plan_.keep_a ? group * plan_.group : std::max(begin, group * plan_.group);
  }
  char* place(std::int64_t group, std::int64_t begin) const {
    const std::int64_t number = plan_.keep_a ? static_cast<std::int64_t>(kept_at(group)) : group - begin / plan_.group;
    return packed_a_ + number * plan_.a_group_bytes();
  }
  std::size_t kept_at(std::int64_t group) const {
    return static_cast<std::size_t>(step_ / plan_.depth * plan_.groups() + group);
  }

  Bytes a_of(std::int64_t batch, std::int64_t panel, std::int64_t begin) const {
    const std::int64_t row = plan_.first_row(panel), group = panel / plan_.group;
    if (plan_.pack_a) return place(group, begin) + (row - plan_.first_row(first_of(group, begin))) * shape_.a_row;
    return place_of_a(batch, panel);
  }

  /// Lines that have to be fetched from far away, first those of b, which are wanted sooner.
  void fetch() {
    if (b_wanted_.any()) b_wanted_.take(turns_, shape_);
    else if (a_wanted_.any()) a_wanted_.take(turns_, shape_);
    else shape_.later = reinterpret_cast<Bytes>(&shape_), shape_.later_step = 0;
  }

  char* c_of(std::int64_t batch, std::int64_t row) const {
    if (plan_.has_pieces()) return piece_ + (row - first_row_) * c_row_;
    return c_ + (batch * p_.c_batch + row * p_.c_row + first_column_) * plan_.c_element;
  }

  /// The first tile to meet a panel of b, which is packed before, or while the tile reads it: it has the time to.
  void first_tile(const Rows& rows, std::int64_t j) {
    const std::int64_t left = columns_ - j;
    const bool copies = may_copy_b() && left >= plan_.width;
    if (!copies) packer_.pack_b(source_of_b(j), std::min(plan_.width, left), depth_, panel_of_b(j));
    if (left > plan_.width && turns_ > 0) want_b(source_of_b(j + plan_.width), depth_);
    if (!copies) return tile(rows, panel_of_b(j), j);
    const std::int64_t row = p_.b_row * plan_.element, step = plan_.form == Form::pairs ? 2 * row : row;
    const TileShape packed = shape_;
    shape_.b_step = step, shape_.b_ahead = rows_ahead * row, shape_.copy = panel_of_b(j);
    tile(rows, source_of_b(j), j);
    shape_ = packed;
  }
  bool may_copy_b() const {
    const bool is_whole = plan_.form == Form::plain || (plan_.form == Form::pairs && p_.k % 2 == 0);
    return is_whole && p_.b_column == 1 && plan_.vectors == copying_vectors;
  }

  void tile(const Rows& rows, Bytes b, std::int64_t j) {
    if (!plan_.wide) return narrow_tile(rows, b, j);
    if (columns_ - j >= plan_.width) {
      fetch();
      const TileFunction multiply = plan_.table->wide[TileTable::kind_of(p_.dtype)][rows.count - 1];
      return multiply(rows.a, b, rows.c + j * plan_.c_element, &shape_, plan_.width, step_ > 0 || p_.resume);
    }
    const std::int64_t step = plan_.vectors * plan_.lanes;
    for (std::int64_t i = j; i < columns_; i += step) narrow_tile(rows, b + (i - j) * plan_.element, i);
  }
  void narrow_tile(const Rows& rows, Bytes b, std::int64_t j) {
    const std::int64_t left = columns_ - j;
    char* const c = rows.c + j * plan_.c_element;
    fetch();
    const TileFunction multiply = tiles_[left > plan_.lanes][rows.count - 1];
    multiply(rows.a, b, plan_.rounds() ? sums_ : c, &shape_, left, step_ > 0 || p_.resume);
    if (!plan_.rounds()) return;
    const PackShape shape{.rows = rows.count,
                          .columns = std::min(left, plan_.width),
                          .source_row = shape_.c_row,
                          .target_row = c_row_,
                          .panel = 0};
    round_(sums_, c, &shape);
  }

  void clear(std::int64_t outer, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t batch = outer + i / plan_.row_panels, panel = i % plan_.row_panels;
      for (std::int64_t row = plan_.first_row(panel); row < plan_.first_row(panel + 1); ++row)
        std::memset(c_of(batch, row), 0, static_cast<std::size_t>(columns_ * plan_.c_element));
      if (p_.is_followed) follow(batch, panel, panel + 1);
    }
  }

  const Plan& plan_;
  const Plan::Scratch at_;
  const Product& p_;
  const Epilogue& epilogue_;
  Share* const share_;
  Bytes a_, b_;
  char *c_, *packed_b_, *packed_a_, *sums_, *piece_;
  const std::int64_t c_row_;    // bytes
  std::int64_t first_row_ = 0;  // of the piece
  const Packer packer_;
  const PackFunction round_;
  const TileFunction (*tiles_)[TileTable::heights];
  std::int64_t outer_ = -1, first_column_ = 0, columns_ = 0, step_ = 0, depth_ = 0, turns_ = 0;
  Bytes b_block_ = nullptr;
  bool first_ = false;  // rows to meet a block of b, whose panels have yet to be packed
  TileShape shape_{};
  std::array<Rows, Plan::most_together> rows_;
  LinesWanted a_wanted_, b_wanted_;
  char* const kept_;  // groups of a, for each pause
};

void run_range(const Plan& plan, Driver& driver, std::int64_t begin, std::int64_t end) {
  Range range = plan.range_of(begin, end);
  for (;;) {
    begin += range.end - range.begin;
    if (begin == end) return driver.run(range, nullptr);
    const Range next = plan.range_of(begin, end);
    driver.run(range, &next);
    range = next;
  }
}

/// Begins amid a range if the share was taken over in its midst.
void run_share(const Plan& plan, Driver& driver, Share& share) {
  const std::int64_t last_pass = plan.pauses() - 1;
  if (const Units begun = share.now(); begun.count() > 0)
    driver.run(plan.range_of(begun.begin, begun.end), nullptr, last_pass - begun.passes_left);
  for (;;) {
    const Units left = share.later();
    if (left.count() <= 0) return;
    const Range range = plan.range_of(left.begin, left.end);
    Units units = share.next(range.end - range.begin);
    if (units.count() <= 0) return;
    units.passes_left = last_pass;
    share.offer(units);
    const Range next = units.end < left.end ? plan.range_of(units.end, left.end) : Range{};
    driver.run(plan.range_of(units.begin, units.end), units.end < left.end ? &next : nullptr);
  }
}

}  // namespace

bool packs_b(const Product& p) { return Plan(p).pack_b; }
std::int64_t units(const Product& product) { return Plan(product).units(); }

std::size_t scratch_bytes(const Product& product) {
  const Plan plan(product);
  if (plan.units() == 0) return 0;
  return static_cast<std::size_t>(plan.scratch().bytes);
}

bool needs_c(const Product& product) { return !Plan(product).has_pieces(); }

void run_units(const Product& product, const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end,
               void* scratch, const Epilogue& epilogue, Share* share) {
  if (begin >= end) return;
  const Plan plan(product);
  if (share &&
      (plan.form == Form::amx || product.k == 0 || plan.pauses() - 1 > Share::most_passes_left)) {  // as one piece
    const Units all = share->next(end - begin);
    begin = all.begin, end = all.end, share = nullptr;
    if (begin >= end) return;
  }
  if (plan.form == Form::amx) return run_amx(plan, a, b, c, begin, end, scratch, epilogue);
  Driver driver(plan, a, b, c, scratch, epilogue, share);
  if (share) run_share(plan, driver, *share);
  else run_range(plan, driver, begin, end);
}

}  // namespace gradus::cpu_backend
