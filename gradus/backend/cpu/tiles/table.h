/// The table of functions that gradus_emit_tiles writes for one instruction set, and the interface between the emitter
/// and the drivers: sizes of tiles, their arguments, the layout of packed panels. Strides are bytes here, elements
/// everywhere else.
#pragma once
#include <cstddef>
#include <cstdint>
#include "gradus/backend/cpu/processors.h"
#include "gradus/backend/cpu/tiles/amx.h"
#include "gradus/tensor/dtype.h"

namespace gradus::cpu_backend {

/// The steps of each turn of a tile's loop. In each turn one line is fetched that is wanted later.
inline constexpr int steps_at_once = 4;

/// Where a run of steps begins: past a, and past b.
struct TileRun {
  std::int64_t a = 0, b = 0;
};
/// One run, at the beginning: the run of matrix products.
inline constexpr TileRun whole_run{};

/// The arguments that all calls of a tile within one block share.
struct TileShape {
  std::int64_t k;              // steps of a run, at least 1
  std::int64_t a_row, a_step;  // a(row, step) is at row * a_row + step * a_step
  std::int64_t b_step;         // columns of b are adjacent
  std::int64_t c_row;          // columns of c are adjacent
  std::int64_t b_ahead;        // to columns of b that are wanted soon: of later steps, or the next panel's
  std::int64_t next;           // c + next is the block of sums wanted next; 0: this one, at the end
  // Lines wanted later, so far apart: one is fetched at each turn; one that is near if there are none.
  const char* later = reinterpret_cast<const char*>(&whole_run);
  std::int64_t later_step = 0;
  std::int64_t runs = 1;  // at least 1, in sequence
  const TileRun* places = &whole_run;
  // The place where steps of b go, contiguously, as full tiles of two vectors read them. With pairs, b is then two rows
  // of bf16 a step, b_step / 2 apart.
  char* copy = nullptr;
};
inline constexpr int copying_vectors = 2;
/// Steps ahead at which packed b is fetched from the second-level cache, where tiles do that. Strips on one core of Zen
/// 4: 104 GFLOP/s without, 111 with, peak 117.
inline constexpr std::int64_t steps_ahead = 8;
/// The same for b in place under wide tiles.
inline constexpr std::int64_t wide_steps_ahead = 4;

/// c = a b, or c += a b if `resume`, over `columns` (at least 1) columns, at most the tile's width; neither b nor c is
/// touched outside of them. Each element is one chain of fma (integers: multiply, add, wrapping) in order of steps.
using TileFunction = void (*)(const void* a, const void* b, void* c, const TileShape*, std::int64_t columns,
                              std::int64_t resume);

/// For pairs, a step is two k of bf16 that lie in 32 bits, the even one lower. The sums are f32 and take the odd one
/// first, then the even one, each with one fma that flushes subnormals; c is of bf16, rounded to nearest even, and
/// there is no resuming. Wide ones leave c as the sums are, f32, and resume.

/// Copies [rows, columns] into panels of W columns (one or two vectors): element (i, j) goes to
/// target + (j / W) * panel + i * target_row + (j % W) * size. Panels are written to their full width, zeros outside.
/// The transposing kind reads element (i, j) at source + j * source_row + i * size; it writes whole squares: rows up to
/// the next multiple of the lanes of a vector, with zeros, and some columns' repetition in the width that is left over.
struct PackShape {
  std::int64_t rows, columns, source_row, target_row, panel;
};
using PackFunction = void (*)(const void* source, void* target, const PackShape*);
/// For 16-bit elements the first kind of copy makes pairs of rows: those of element j of rows 2 i and 2 i + 1 are at
/// target + (j / W) * panel + i * target_row + (j % W) * 4, the first one lower, 0 for a row 2 i + 1 that is missing.
/// Rounding: [rows, columns] of f32, rows `source_row` apart, become bf16, `target_row` apart, to nearest even;
/// subnormals there are none. Nothing outside is written.

struct TileTable {
  /// Products of unsigned integers are those of signed ones.
  static constexpr DType kinds[] = {f64, f32, i64, i32};
  static constexpr int dtypes = 4, pairs = 4, wide_pairs = 5, widths = 2, heights = 24, sizes = 2;
  static constexpr int kind_of(DType t) { return t == f64 ? 0 : t == f32 ? 1 : t == i64 || t == u64 ? 2 : 3; }
  // By kind (the last: pairs, wide pairs), vectors - 1, rows - 1; null past the greatest height, and for pairs without
  // AVX-512.
  TileFunction tiles[dtypes + 2][widths][heights];
  PackFunction copy[sizes][widths];  // by bytes of an element (4, 8), vectors - 1
  PackFunction transpose[sizes][widths];
  PackFunction pair_rows[widths];
  PackFunction round;
  // Null without AVX-512.
  PackFunction round_pairs;                 // with the bits of `round`, by an instruction of AVX512_BF16
  AmxFunction amx[AmxTiles::most][widths];  // by tiles of rows - 1, of columns - 1
  void (*configure_amx)(const AmxConfiguration*);
  void (*release_amx)();
  TileFunction wide[dtypes][TileSizes::few_rows];  // by kind, rows - 1; of all their columns
};

/// Entry i of the table is also a symbol, its name with _i. An object file of a step has a table of its own under the
/// name of the whole one, of the entries that its step calls (used_tiles.h).
#if defined(__x86_64__)
extern "C" const TileTable gradus_tiles_avx2, gradus_tiles_avx512;
#else
extern "C" const TileTable gradus_tiles_neon;
#endif

constexpr std::size_t tile_entries = sizeof(TileTable) / sizeof(void*);

/// The tiles of a processor; of one of another architecture, for which products are only planned, null.
inline const TileTable* tiles_of(Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::avx512 ? &gradus_tiles_avx512 : isa == Isa::avx2 ? &gradus_tiles_avx2 : nullptr;
#else
  return isa == Isa::neon ? &gradus_tiles_neon : nullptr;
#endif
}

}  // namespace gradus::cpu_backend
