/// The drivers: they walk over a plan's blocks, pack what has to be, and call tiles.
#include "gradus/backend/cpu/tiles/product.h"
#include <algorithm>
#include <cstring>
#include "gradus/backend/cpu/tiles/plan.h"

namespace gradus::cpu_backend {
namespace {

using Bytes = const char*;

/// One range of units that share a block of columns.
class Driver {
 public:
  Driver(const Plan& plan, const void* a, const void* b, void* c, void* scratch)
      : plan_(plan),
        p_(plan.product),
        size_(plan.size),
        a_(static_cast<Bytes>(plan.swapped ? b : a)),
        b_(static_cast<Bytes>(plan.swapped ? a : b)),
        c_(static_cast<char*>(c)),
        packed_b_(static_cast<char*>(scratch)),
        packed_a_(packed_b_ + plan.packed_b_bytes()),
        tiles_(plan.table->tiles[TileTable::kind_of(p_.dtype)]) {}

  /// Row panels [begin, end), counted over the inner batch.
  void run(std::int64_t outer, std::int64_t column_block, std::int64_t begin, std::int64_t end) {
    first_column_ = column_block * plan_.block;
    columns_ = std::min(plan_.block, p_.n - first_column_);
    b_block_ = b_ + (outer * p_.b_batch + first_column_ * p_.b_column) * size_;
    for (step_ = 0; step_ < p_.k; step_ += plan_.depth) {
      shape_.k = std::min(plan_.depth, p_.k - step_);
      set_strides();
      if (plan_.pack_b) pack_b();
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t panel = i % plan_.row_panels;
        const std::int64_t count = std::min({plan_.group, plan_.row_panels - panel, end - i});
        row_panels(outer + i / plan_.row_panels, panel, panel + count);
        i += count;
      }
    }
    if (p_.k == 0 && !p_.resume) clear(outer, begin, end);
  }

 private:
  void set_strides() {
    shape_.a_row = plan_.pack_a ? plan_.a_pitch_bytes() : p_.a_row * size_;
    shape_.a_step = plan_.pack_a ? size_ : p_.a_column * size_;
    shape_.b_step = plan_.pack_b ? plan_.width * size_ : p_.b_row * size_;
    shape_.b_ahead = plan_.pack_b ? plan_.b_panel_bytes() : plan_.width * size_;
    shape_.c_row = p_.c_row * size_;
    shape_.next = step_ > 0 ? plan_.width * size_ : 0;
  }

  void pack_b() {
    const auto kind = p_.b_column == 1 ? plan_.table->copy : plan_.table->transpose;
    const PackShape shape{.rows = shape_.k,
                          .columns = columns_,
                          .source_row = (p_.b_column == 1 ? p_.b_row : p_.b_column) * size_,
                          .target_row = shape_.b_step,
                          .panel = plan_.b_panel_bytes()};
    kind[size_ / 8][plan_.vectors - 1](b_block_ + step_ * p_.b_row * size_, packed_b_, &shape);
  }

  /// Row by row, whichever way a lies.
  Bytes pack_a(Bytes a, std::int64_t rows) {
    const bool by_row = p_.a_column == 1;
    const PackShape shape{.rows = rows,
                          .columns = shape_.k,
                          .source_row = (by_row ? p_.a_row : p_.a_column) * size_,
                          .target_row = plan_.a_pitch_bytes(),
                          .panel = 2 * plan_.lanes * size_};
    (by_row ? plan_.table->copy : plan_.table->transpose)[size_ / 8][1](a, packed_a_, &shape);
    return packed_a_;
  }

  /// Panels of one matrix, no more than a group.
  void row_panels(std::int64_t batch, std::int64_t begin, std::int64_t end) {
    const std::int64_t first = plan_.first_row(begin);
    Bytes a = a_ + (batch * p_.a_batch + first * p_.a_row + step_ * p_.a_column) * size_;
    if (plan_.pack_a) a = pack_a(a, plan_.first_row(end) - first);
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t row = plan_.first_row(panel);
      row_panel(a + (row - first) * shape_.a_row, batch, row, plan_.rows(panel));
    }
  }

  void row_panel(Bytes a, std::int64_t batch, std::int64_t row, std::int64_t rows) {
    char* c = c_ + (batch * p_.c_batch + row * p_.c_row + first_column_) * size_;
    for (std::int64_t j = 0; j < columns_; j += plan_.width) {
      const std::int64_t left = columns_ - j;
      Bytes b = plan_.pack_b ? packed_b_ + j / plan_.width * plan_.b_panel_bytes()
                             : b_block_ + (step_ * p_.b_row + j) * size_;
      tiles_[left > plan_.lanes][rows - 1](a, b, c + j * size_, &shape_, left, step_ > 0 || p_.resume);
    }
  }

  void clear(std::int64_t outer, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t batch = outer + i / plan_.row_panels, panel = i % plan_.row_panels;
      for (std::int64_t row = plan_.first_row(panel); row < plan_.first_row(panel + 1); ++row)
        std::memset(c_ + (batch * p_.c_batch + row * p_.c_row + first_column_) * size_, 0, columns_ * size_);
    }
  }

  const Plan& plan_;
  const Product& p_;
  const std::int64_t size_;
  Bytes a_, b_;
  char *c_, *packed_b_, *packed_a_;
  const TileFunction (*tiles_)[TileTable::heights];
  std::int64_t first_column_ = 0, columns_ = 0, step_ = 0;
  Bytes b_block_ = nullptr;
  TileShape shape_{};
};

}  // namespace

std::int64_t units(const Product& product) { return Plan(product).units(); }

std::size_t scratch_bytes(const Product& product) {
  const Plan plan(product);
  return plan.units() ? plan.packed_b_bytes() + plan.packed_a_bytes() : 0;
}

void run_units(const Product& product, const void* a, const void* b, void* c, std::int64_t begin, std::int64_t end,
               void* scratch) {
  const Plan plan(product);
  Driver driver(plan, a, b, c, scratch);
  const std::int64_t panels = plan.inner_batch * plan.row_panels;  // of one block of columns
  while (begin < end) {
    const std::int64_t block = begin / panels, first = begin % panels;
    const std::int64_t last = std::min(panels, first + end - begin);
    driver.run(block / plan.column_blocks, block % plan.column_blocks, first, last);
    begin += last - first;
  }
}

}  // namespace gradus::cpu_backend
