/// How a product is cut: a function of its sizes, its strides and the instruction set alone.
#pragma once
#include <algorithm>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/table.h"
#include "gradus/base/divide.h"

namespace gradus::cpu_backend {

/// What tiles read.
enum class Form : std::uint8_t {
  plain,    // elements as they are, a step is one k
  pairs,    // of bf16: a step is two k
  widened,  // of bf16, for processors without tiles of pairs: f32, of each pair the odd k first
};

/// A unit is one row panel of one block of columns. Units are ordered by (outer batch, part, column block, inner batch,
/// row panel), the last fastest: neighbours use the same packed block of b. Matrices that share b are the inner batch.
/// A part is half of the row panels of the inner batch, or all of them.
struct Plan {
  explicit Plan(const Product&);

  Product product;  // as given, or in a simpler form
  bool swapped;     // a is b's transpose and b is a's
  Form form;
  const TileTable* table;
  std::int64_t element, c_element;  // bytes in memory, of a and b, and of c
  std::int64_t size, lanes;         // bytes of what tiles read at a step, and how many a vector holds
  std::int64_t outer_batch, inner_batch;
  std::int64_t row_panels, column_blocks;
  std::int64_t parts = 1;  // of two blocks of columns two threads would write neighbouring lines at the same time
  std::int64_t panel_rows = 0, taller_panels = 0;  // the first panels are a row higher than the others
  std::int64_t vectors, width;                     // of a tile
  std::int64_t block = 0;                          // columns of a column block, a multiple of width
  std::int64_t depth;                              // k between pauses in memory
  bool pack_a, pack_b;
  bool streamed;        // few rows, so that b is read once, in place, from far away
  bool keep_a = false;  // packed a stays for all column blocks of a range of units
  std::int64_t group;   // row panels of a that are packed at once
  bool is_deep;         // chains are so long that panels of b are what stays near
  static constexpr std::int64_t most_together = 56;
  std::int64_t resident;  // row panels that pass by a panel of b while it is near

  std::int64_t groups() const { return divide_up(row_panels, group); }
  std::int64_t pauses() const { return product.k == 0 ? 1 : divide_up(product.k, depth); }  // with the end
  std::int64_t panels() const { return inner_batch * row_panels; }
  std::int64_t units() const { return outer_batch * column_blocks * panels(); }
  std::int64_t steps(std::int64_t k) const {
    return form == Form::plain ? k : form == Form::pairs ? (k + 1) / 2 : (k + 1) / 2 * 2;
  }

  /// Heights of panels differ by one at most: 64 rows are 13 13 13 13 12.
  std::int64_t first_row(std::int64_t panel) const { return panel * panel_rows + std::min(panel, taller_panels); }
  std::int64_t rows(std::int64_t panel) const { return first_row(panel + 1) - first_row(panel); }

  // Packed rows and panels take an odd number of cache lines, so that they fall into different sets of the cache.
  std::int64_t b_panel_bytes() const { return b_panel_bytes_of(steps(depth)); }
  std::int64_t packed_b_bytes() const { return pack_b ? b_panel_bytes() * (block / width) : 0; }

  /// Packed a keeps its order in memory: row by row, or, if rows are adjacent, step by step.
  bool a_by_rows() const { return product.a_column == 1; }
  std::int64_t a_pitch_bytes() const { return a_pitch_bytes_of(steps(depth)); }
  std::int64_t a_group_bytes() const { return a_group_bytes_of(steps(depth)); }
  std::int64_t packed_a_bytes() const;

  // Of bf16 that is widened: pairs lie in between, in the layout that tiles of pairs would read.
  std::int64_t pair_panel_bytes() const { return b_panel_bytes_of((depth + 1) / 2); }
  std::int64_t pair_pitch_bytes() const { return a_pitch_bytes_of((depth + 1) / 2); }
  std::int64_t pairs_bytes() const;

  /// The sums of one tile, if they are not those of c.
  std::int64_t sums_bytes() const { return rounds() ? TileTable::heights * width * size : 0; }
  bool rounds() const { return form == Form::widened && !product.wide; }

 private:
  std::int64_t b_panel_bytes_of(std::int64_t steps) const;
  std::int64_t a_pitch_bytes_of(std::int64_t steps) const;
  std::int64_t a_group_bytes_of(std::int64_t steps) const;
  void choose_packing();
  /// Blocks of packed b are narrower than they may be where that would make too few units.
  void cut_columns();
};

}  // namespace gradus::cpu_backend
