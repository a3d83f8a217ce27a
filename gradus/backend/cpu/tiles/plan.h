/// How a product is cut: a function of its sizes, its strides and the instruction set alone.
#pragma once
#include <algorithm>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/table.h"

namespace gradus::cpu_backend {

/// A unit is one row panel of one block of columns. Units are ordered by (outer batch, column block, inner batch, row
/// panel), the last fastest: neighbours use the same packed block of b. Matrices that share b are the inner batch.
struct Plan {
  explicit Plan(const Product&);

  Product product;  // as given, or in a simpler form
  bool swapped;     // a is b's transpose and b is a's
  const TileTable* table;
  std::int64_t size, lanes;
  std::int64_t outer_batch, inner_batch;
  std::int64_t row_panels, column_blocks;
  std::int64_t vectors, width;  // of a tile
  std::int64_t block = 0;       // columns of a column block, a multiple of width
  std::int64_t depth;           // steps between pauses in memory
  bool pack_a, pack_b;
  bool streamed;       // few rows, so that b is read once, in place, from far away
  std::int64_t group;  // row panels of a that are packed at once

  std::int64_t units() const { return outer_batch * column_blocks * inner_batch * row_panels; }

  /// Heights of panels differ by one at most: 64 rows are 13 13 13 13 12.
  std::int64_t first_row(std::int64_t panel) const {
    return panel * (product.m / row_panels) + std::min(panel, product.m % row_panels);
  }
  std::int64_t rows(std::int64_t panel) const { return first_row(panel + 1) - first_row(panel); }

  // Packed rows and panels take an odd number of cache lines, so that they fall into different sets of the cache.
  std::int64_t b_panel_bytes() const;
  std::int64_t a_pitch_bytes() const;  // of a row
  std::int64_t packed_b_bytes() const { return pack_b ? b_panel_bytes() * (block / width) : 0; }
  std::int64_t packed_a_bytes() const;

 private:
  void choose_packing();
  /// Blocks of packed b fill a part of the second-level cache; they are narrower where that makes too few units.
  void cut_columns();
};

}  // namespace gradus::cpu_backend
