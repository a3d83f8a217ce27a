/// Products of strips: rows of a that lie evenly apart in an image, and whose steps come in runs, a row of taps each.
#pragma once
#include <span>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/tiles/table.h"

namespace gradus::cpu_backend {

/// The sizes and strides that strips share. Strides count elements. Nothing is packed, so those of a may be any.
struct Strips {
  DType dtype = f32;   // f32, f64, or an integer of 32 or 64 bits
  std::int64_t k = 0;  // steps of a run
  std::int64_t a_row = 0, a_step = 1, b_step = 0, c_row = 0;
  std::span<const TileRun> runs = {};  // at least one; bytes
  Isa isa = cpu_backend::isa();
};

/// Calls tiles for one column panel after the other.
class StripTiles {
 public:
  explicit StripTiles(const Strips& strips);

  /// Columns of a panel.
  static std::int64_t width(DType dtype, std::int64_t columns, Isa isa = cpu_backend::isa());

  /// c = a b, or c += a b if `resume`, of any number of rows and at most a panel of columns: the elements' chains go
  /// through the runs in order.
  void multiply(const void* a, const void* b, void* c, std::int64_t rows, std::int64_t columns, bool resume) const;

 private:
  const TileTable& table_;
  const TileFunction (*tiles_)[TileTable::heights];
  std::int64_t lanes_, heights_[TileTable::widths];
  TileShape shape_;
};

/// Copies b [rows, columns], whose rows are `row` elements apart, into panels of `width` columns, each `panel` bytes
/// behind the one before, and rows in them width elements apart.
void pack_panels(DType dtype, const void* b, std::int64_t rows, std::int64_t columns, std::int64_t row,
                 std::int64_t width, std::int64_t panel, void* target, Isa isa = cpu_backend::isa());

/// The transpose of b [rows, columns], whose rows are `row` elements apart; those of the target are `pitch` apart.
/// Whole vectors are written: the target's columns up to a multiple of two vectors' lanes, its rows up to a multiple of
/// one vector's; elements past b's are elements of b or 0.
void transpose(DType dtype, const void* b, std::int64_t rows, std::int64_t columns, std::int64_t row,
               std::int64_t pitch, void* target, Isa isa = cpu_backend::isa());

}  // namespace gradus::cpu_backend
