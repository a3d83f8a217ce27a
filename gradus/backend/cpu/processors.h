/// The processors that Gradus makes code for, a row of a table each. All else asks a row for a property; nothing asks
/// for a processor by its name. Decision 472 has the reasons.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace gradus::cpu_backend {

/// An instruction set: kernels are compiled once for each.
enum class Isa : std::uint8_t { avx2, avx512, neon };

/// Heights and widths of tiles of matrix products: as many sums as the registers hold beside the operands.
struct TileSizes {
  std::int64_t vector_bytes;
  std::int64_t rows[2];   // greatest height of tiles that are one and two vectors wide
  bool fetches_packed_b;  // at each step; else that is left to the processor
  // Few rows read b once, from far away. Their tiles are wide, so that they read a row of b contiguously: by rows - 1.
  static constexpr int few_rows = 4;
  std::int64_t wide_vectors[few_rows];
};

struct Processor {
  Isa isa;
  const char* name;    // as GRADUS_ISA and instruction_set() have it
  const char* target;  // whose programs run on it, as ObjectOptions::target has it
  // For LLVM. Code and tiles for every processor of the row need what isa.cpp asks the processor for, and no more.
  const char *triple, *cpu, *features, *tile_cpu, *tile_features;
  const char* tile_table;  // the symbol of its TileTable (tiles/table.h)
  TileSizes tiles;
  std::int64_t kernel_vector_bytes;  // of kernels in C++ (kernels/vector_bytes.h)
  // Properties.
  bool has_masks;       // loads and stores of some lanes are an instruction
  bool has_pair_tiles;  // there are tiles for products of pairs of bf16, for processors with such products
  bool
      has_near_panels;  // chains may pause, so that a panel of b stays in the first-level cache (prefers_near_panels())
  bool
      turns_low_tiles;  // tiles are so low that a step of a would use a third of each line: a is turned as it is packed
  bool follows_host;    // code that is made to run here uses all that this very processor has
  bool uses_amx = false;  // products of bf16 by tiles of AMX, whose sums have an order of their own
};

inline constexpr Processor avx512_row{.isa = Isa::avx512,
                                      .name = "avx512",
                                      .target = "x86_64-linux-gnu",
                                      .triple = "x86_64-unknown-linux-gnu",
                                      .cpu = "x86-64-v4",
                                      .features = "",
                                      .tile_cpu = "x86-64",
                                      .tile_features = "+avx2,+fma,+prfchw,+avx512f,+avx512bw,+avx512dq,+avx512vl",
                                      .tile_table = "gradus_tiles_avx512",
                                      .tiles = {64, {24, 14}, true, {16, 12, 8, 6}},
                                      .kernel_vector_bytes = 64,
                                      .has_masks = true,
                                      .has_pair_tiles = true,
                                      .has_near_panels = true,
                                      .turns_low_tiles = false,
                                      .follows_host = true};

/// The row of a processor that multiplies bf16 by AMX, too.
constexpr Processor row_with_amx(Processor row) {
  row.name = "avx512 with AMX";
  row.uses_amx = true;
  return row;
}

/// AVX2: 12 sums beside a and b in 16 registers; AVX-512: 28 in 32. NEON: pairs of vectors, as many sums as AVX2 has,
/// in 24 of 32 registers.
inline constexpr Processor processors[] = {
    {.isa = Isa::avx2,
     .name = "avx2",
     .target = "x86_64-linux-gnu",
     .triple = "x86_64-unknown-linux-gnu",
     .cpu = "haswell",
     .features = "",
     .tile_cpu = "x86-64",
     .tile_features = "+avx2,+fma,+prfchw",
     .tile_table = "gradus_tiles_avx2",
     .tiles = {32, {12, 6}, false, {12, 6, 4, 3}},
     .kernel_vector_bytes = 32,
     .has_masks = true,
     .has_pair_tiles = false,
     .has_near_panels = false,
     .turns_low_tiles = true,
     .follows_host = false},
    avx512_row,
    row_with_amx(avx512_row),
    {.isa = Isa::neon,
     .name = "neon",
     .target = "aarch64-linux-gnu",
     .triple = "aarch64-unknown-linux-gnu",
     .cpu = "generic",
     .features = "+neon",
     .tile_cpu = "generic",
     .tile_features = "+neon",
     .tile_table = "gradus_tiles_neon",
     .tiles = {32, {12, 6}, false, {12, 6, 4, 3}},
     .kernel_vector_bytes = 16,
     .has_masks = false,
     .has_pair_tiles = false,
     .has_near_panels = false,
     .turns_low_tiles = true,
     .follows_host = false},
};

/// The row of an instruction set, without AMX.
constexpr const Processor& processor_of(Isa isa) {
  return processors[isa == Isa::avx2 ? 0 : isa == Isa::avx512 ? 1 : 3];
}

/// The target that this library was built for, and the rows of processors that run it.
#if defined(__x86_64__)
inline constexpr std::string_view own_target = "x86_64-linux-gnu";
#elif defined(__aarch64__)
inline constexpr std::string_view own_target = "aarch64-linux-gnu";
#else
#error "gradus computes on x86-64 (AVX2 or AVX-512) and on 64-bit ARM"
#endif
constexpr bool is_own(const Processor& processor) { return processor.target == own_target; }
constexpr bool is_own(Isa isa) { return is_own(processor_of(isa)); }

}  // namespace gradus::cpu_backend
