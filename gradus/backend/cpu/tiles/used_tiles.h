/// The tiles that a step calls. When kernels are bound they note the tiles of their products here, so that an object
/// file takes along these alone. A note costs a look at a pointer where nobody gathers.
#pragma once
#include <bitset>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/table.h"

namespace gradus::cpu_backend {

/// Entries of a TileTable, by number.
using TileSet = std::bitset<tile_entries>;

/// While it lives, it gathers what its thread notes.
class UsedTiles {
 public:
  UsedTiles();
  ~UsedTiles();
  UsedTiles(const UsedTiles&) = delete;
  UsedTiles& operator=(const UsedTiles&) = delete;
  const TileSet& all() const { return all_; }
  void add(const TileSet& more) { all_ |= more; }

 private:
  TileSet all_;
  UsedTiles* const outer_;
};

/// Those of run_units() for this product, whatever its `resume`.
void note_tiles(const Product& product);
/// Those of run_units() for products of this dtype whose sizes are known when they run. Not for bf16.
void note_tiles_of_any_size(DType dtype);
/// Those of StripTiles::multiply() for so many rows and columns.
void note_strip_tiles(DType dtype, std::int64_t rows, std::int64_t columns);
/// Those of pack_panels() and of transpose() in strips.h.
void note_packed_panels(DType dtype, std::int64_t width);
void note_transpose(DType dtype);

}  // namespace gradus::cpu_backend
