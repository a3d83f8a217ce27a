/// The notes of kernels. They follow the drivers (tiles/product.cpp, strips.cpp, pack.cpp) entry by entry: a tile that
/// a driver calls and that was not noted is missing from an object file.
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include <algorithm>
#include <cstddef>
#include "gradus/backend/cpu/tiles/plan.h"
#include "gradus/base/divide.h"
#include "gradus/base/numbered.h"

namespace gradus::cpu_backend {
namespace {

constexpr std::size_t pointer_bytes = sizeof(void*);
constexpr std::size_t of_pairs = 0;  // among the sizes of elements: 4 bytes

/// The entries of one product or strip.
class Notes {
 public:
  /// Tiles of some kind; widths: that they have one, that they have two vectors.
  void tile(std::size_t kind, std::size_t wide, std::int64_t rows) {
    add(offsetof(TileTable, tiles), (kind * TileTable::widths + wide) * TileTable::heights + at(rows - 1));
  }
  void wide_tile(std::size_t kind, std::int64_t rows) {
    add(offsetof(TileTable, wide), kind * TileSizes::few_rows + at(rows - 1));
  }
  void copy(std::size_t size, std::int64_t vectors) { pack(offsetof(TileTable, copy), size, vectors); }
  void transpose(std::size_t size, std::int64_t vectors) { pack(offsetof(TileTable, transpose), size, vectors); }
  void pair_rows(std::int64_t vectors) { add(offsetof(TileTable, pair_rows), at(vectors - 1)); }
  void round(bool by_instruction) {
    add(by_instruction ? offsetof(TileTable, round_pairs) : offsetof(TileTable, round), 0);
  }
  const TileSet& all() const { return set_; }

 private:
  void pack(std::size_t first, std::size_t size, std::int64_t vectors) {
    add(first, size * TileTable::widths + at(vectors - 1));
  }
  void add(std::size_t first_byte, std::size_t number) { set_.set(first_byte / pointer_bytes + number); }

  TileSet set_;
};

std::size_t kind_of(const Plan& plan) {
  if (plan.form == Form::pairs) return at(plan.product.wide ? TileTable::wide_pairs : TileTable::pairs);
  return at(TileTable::kind_of(plan.form == Form::widened ? DType(f32) : plan.product.dtype));
}

/// Notes the tiles of `columns` columns, panel after panel of two vectors, or of one where one is enough.
void note_columns(Notes& notes, std::size_t kind, std::int64_t columns, std::int64_t width, std::int64_t lanes,
                  std::int64_t rows) {
  const std::int64_t rest = columns % width;
  if (columns >= width) notes.tile(kind, width > lanes, rows);
  if (rest > 0) notes.tile(kind, rest > lanes, rows);
}

void note_rows(Notes& notes, const Plan& plan, std::int64_t rows) {
  const std::size_t kind = kind_of(plan);
  const std::int64_t n = plan.product.n, narrow_width = plan.vectors * plan.lanes;
  if (!plan.wide) return note_columns(notes, kind, n, narrow_width, plan.lanes, rows);
  if (n >= plan.width) notes.wide_tile(kind, rows);
  note_columns(notes, kind, n % plan.width, narrow_width, plan.lanes, rows);
}

/// As Packer has it.
void note_packing(Notes& notes, const Plan& plan) {
  const Product& p = plan.product;
  const std::size_t size = at(plan.size) / 8;
  if (plan.form == Form::plain) {
    const bool turns_to_steps = plan.turn_a && !plan.packed_a_by_rows();
    if (plan.pack_b && p.b_column == 1) notes.copy(size, plan.vectors);
    else if (plan.pack_b) notes.transpose(size, plan.vectors);
    if (plan.pack_a && plan.turn_a) notes.transpose(size, turns_to_steps ? 1 : 2);
    else if (plan.pack_a) notes.copy(size, 2);
    return;
  }
  if (p.b_column == 1) notes.pair_rows(plan.vectors);
  else notes.transpose(of_pairs, plan.vectors);
  if (plan.pack_a && plan.a_by_rows()) notes.copy(of_pairs, 2);
  else if (plan.pack_a) notes.pair_rows(2);
  if (plan.rounds()) notes.round(p.rounds_by_instruction && plan.table != nullptr && plan.table->round_pairs);
}

const TileSizes& sizes_now() { return processor().tiles; }

}  // namespace

TileSet tiles_for(const Product& product) {
  const Plan plan(product);
  Notes notes;
  if (plan.units() == 0 || plan.form == Form::amx) return notes.all();  // objects have no AMX
  note_rows(notes, plan, plan.rows(0));
  note_rows(notes, plan, plan.rows(plan.row_panels - 1));
  note_packing(notes, plan);
  return notes.all();
}

TileSet tiles_for_any_size(DType dtype) {
  Notes notes;
  const std::size_t kind = at(TileTable::kind_of(dtype)), size = at(size_of(dtype)) / 8;
  for (const std::size_t wide : {std::size_t{0}, std::size_t{1}})
    for (std::int64_t rows = 1; rows <= sizes_now().rows[wide]; ++rows) notes.tile(kind, wide, rows);
  for (std::int64_t rows = 1; rows <= TileSizes::few_rows; ++rows) notes.wide_tile(kind, rows);
  for (const std::int64_t vectors : {std::int64_t{1}, std::int64_t{2}})
    notes.copy(size, vectors), notes.transpose(size, vectors);
  return notes.all();
}

TileSet tiles_for_strips(DType dtype, std::int64_t rows, std::int64_t columns) {
  Notes notes;
  if (rows <= 0 || columns <= 0) return notes.all();
  const std::int64_t lanes = sizes_now().vector_bytes / size_of(dtype);
  const std::size_t wide = columns > lanes ? 1 : 0;
  const std::int64_t panels = divide_up(rows, sizes_now().rows[wide]), height = rows / panels;
  notes.tile(at(TileTable::kind_of(dtype)), wide, height);
  if (rows % panels > 0) notes.tile(at(TileTable::kind_of(dtype)), wide, height + 1);
  return notes.all();
}

TileSet tiles_for_panels(DType dtype, std::int64_t width) {
  Notes notes;
  notes.copy(at(size_of(dtype)) / 8, width * size_of(dtype) / sizes_now().vector_bytes);
  return notes.all();
}

TileSet tiles_for_transpose(DType dtype) {
  Notes notes;
  notes.transpose(at(size_of(dtype)) / 8, 2);
  return notes.all();
}

}  // namespace gradus::cpu_backend
