/// The tiles that kernels call. A kernel says at its binding which ones its runs will call, so that an object file
/// takes along these alone.
#pragma once
#include <bitset>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/table.h"

namespace gradus::cpu_backend {

/// Entries of a TileTable, by number.
using TileSet = std::bitset<tile_entries>;

/// Those of run_units() for this product, whatever its `resume`.
TileSet tiles_for(const Product& product);
/// Those of run_units() for products of this dtype whose sizes are known when they run, and of transposes. Not for
/// bf16.
TileSet tiles_for_any_size(DType dtype);
/// Those of StripTiles::multiply() for so many rows and columns.
TileSet tiles_for_strips(DType dtype, std::int64_t rows, std::int64_t columns);
/// Those of pack_panels() and of transpose() in strips.h.
TileSet tiles_for_panels(DType dtype, std::int64_t width);
TileSet tiles_for_transpose(DType dtype);

}  // namespace gradus::cpu_backend
