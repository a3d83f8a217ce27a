/// The plan of a matrix product: how it is cut into blocks. It depends on sizes, strides and the instruction set alone.
#pragma once
#include <algorithm>
#include "gradus/backend/cpu/tiles/product.h"
#include "gradus/backend/cpu/tiles/table.h"
#include "gradus/base/divide.h"

namespace gradus::cpu_backend {

/// The form of the elements that tiles read.
enum class Form : std::uint8_t {
  plain,    // elements as they are, a step is one k
  pairs,    // of bf16: a step is two k
  widened,  // of bf16, for processors without tiles of pairs: f32, of each pair the odd k first
  amx,      // of bf16: pairs, a row by row, filled up with zeros to whole tiles of AMX
};

/// Units that share a block of columns: row panels [begin, end), counted over the inner batch.
struct Range {
  std::int64_t outer, column_block, begin, end;
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
  std::int64_t size, lanes;         // bytes that tiles read at a step, and the number in a vector
  std::int64_t outer_batch, inner_batch;
  std::int64_t row_panels, column_blocks;
  std::int64_t parts = 1;  // of two blocks of columns two threads would write neighbouring lines at the same time
  std::int64_t panel_rows = 0, taller_panels = 0;  // the first panels are a row higher than the others
  std::int64_t vectors;                            // of a tile, which is one or two wide
  bool wide;                                       // but for a few rows over b in place
  std::int64_t width;                              // columns of a tile
  std::int64_t block = 0;                          // columns of a column block, a multiple of width
  std::int64_t depth;                              // k between pauses in memory
  bool pack_a, pack_b;
  bool turn_a = false;  // packed a is its transpose: rows become steps, or the other way
  bool streamed;        // few rows, so that b is read once, in place, from far away
  bool keep_a = false;  // packed a stays for all column blocks of a range of units
  std::int64_t group;   // row panels of a that are packed at once
  bool is_deep;         // chains are so long that panels of b stay near
  static constexpr std::int64_t most_together = 56;
  std::int64_t resident;  // row panels that pass by a panel of b while it is near

  std::int64_t groups() const { return divide_up(row_panels, group); }
  std::int64_t pauses() const { return product.k == 0 ? 1 : divide_up(product.k, depth); }  // with the end
  std::int64_t panels() const { return inner_batch * row_panels; }
  std::int64_t units() const { return outer_batch * column_blocks * panels(); }
  /// The longest range from unit `begin` on, before unit `end`.
  Range range_of(std::int64_t begin, std::int64_t end) const;
  std::int64_t steps(std::int64_t k) const {
    const std::int64_t pairs = (k + 1) / 2;
    if (form == Form::amx) return round_up(pairs, AmxTiles::steps);
    return form == Form::plain ? k : form == Form::pairs ? pairs : pairs * 2;
  }

  /// Heights of panels differ by one at most: 64 rows are 13 13 13 13 12.
  std::int64_t first_row(std::int64_t panel) const { return panel * panel_rows + std::min(panel, taller_panels); }
  std::int64_t rows(std::int64_t panel) const { return first_row(panel + 1) - first_row(panel); }
  std::int64_t most_rows() const { return row_panels == 0 ? 0 : divide_up(product.m, row_panels); }

  // Packed rows and panels take an odd number of cache lines, so that they fall into different sets of the cache.
  std::int64_t b_panel_bytes() const { return b_panel_bytes_of(steps(depth)); }
  std::int64_t packed_b_bytes() const { return pack_b ? b_panel_bytes() * (block / width) : 0; }

  /// Packed a keeps its order in memory: row by row, or, if rows are adjacent, step by step, unless it is turned. For
  /// AMX it is always row by row.
  bool a_by_rows() const { return product.a_column == 1; }
  bool packed_a_by_rows() const { return form == Form::amx || a_by_rows() != turn_a; }
  std::int64_t a_pitch_bytes() const { return a_pitch_bytes_of(steps(depth)); }
  std::int64_t a_group_bytes() const { return a_group_bytes_of(steps(depth)); }
  std::int64_t packed_a_bytes() const;

  // For bf16 that is widened: pairs lie in between, in the layout that tiles of pairs would read.
  std::int64_t pair_panel_bytes() const { return b_panel_bytes_of((depth + 1) / 2); }
  std::int64_t pair_pitch_bytes() const { return a_pitch_bytes_of((depth + 1) / 2); }
  std::int64_t pairs_bytes() const;

  /// For a product with an epilogue: true if c lies in scratch, a piece at a time; its layout.
  bool has_pieces() const { return product.is_followed && product.k > 0 && pauses() == 1; }
  std::int64_t piece_pitch_bytes() const;
  std::int64_t piece_bytes() const;
  /// These rows and columns, whose first element is at `c`, as the epilogue sees them.
  Piece piece(const void* c, std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column,
              std::int64_t columns) const;

  /// Flags, a byte for each part of packed a that stays: true once it is packed.
  std::int64_t kept_bytes() const { return keep_a ? (form == Form::amx ? row_panels : groups() * pauses()) : 0; }

  /// The sums of one tile, if they are not those of c; of AMX those of a row panel, if they wait for further k.
  std::int64_t sums_bytes() const;

  /// The layout of a thread's scratch.
  struct Scratch {
    std::int64_t packed_b, packed_a, sums, pairs, tail, piece, kept, bytes;
  };
  Scratch scratch() const;

  // For AMX: packed b waits in the second-level cache, and past it goes a row panel of a, so few k at a time that these
  // stay in the first-level cache. Its panels are of one height, that of the tiles: a lower one takes the row before it
  // along, or the rows behind it in packed a.
  std::int64_t height() const { return panel_rows + (taller_panels > 0); }
  std::int64_t amx_depth() const;
  std::int64_t sums_panel_bytes() const { return AmxTiles::most * AmxTiles::rows * width * size; }
  /// The last k of a row panel of a that is read in place, if they do not fill a tile.
  std::int64_t tail_bytes() const { return form != Form::amx || pack_a ? 0 : height() * AmxTiles::row_bytes; }
  /// True if sums and result differ.
  bool rounds() const { return form == Form::widened && !product.wide; }
  /// The function that rounds sums to bf16.
  PackFunction round() const {
    return product.rounds_by_instruction && table->round_pairs ? table->round_pairs : table->round;
  }

 private:
  std::int64_t b_panel_bytes_of(std::int64_t steps) const;
  std::int64_t a_pitch_bytes_of(std::int64_t steps) const;
  std::int64_t a_group_bytes_of(std::int64_t steps) const;
  bool is_wide(const TileSizes& sizes) const;
  void choose_packing();
  /// True if the epilogue gets whole rows: b then passes by in the order of its columns for every few panels.
  bool has_whole_rows() const;
  /// Blocks of packed b are narrower than they may be where that would make too few units.
  void cut_columns();
};

}  // namespace gradus::cpu_backend
