/// The interface between the emitter and the driver of AMX: numbers and sizes of its tiles, and the functions over
/// them. Tiles belong to a thread. They keep their shapes and sums from a configuration until they are released.
/// Strides are bytes.
#pragma once
#include <cstdint>

namespace gradus::cpu_backend {

/// Two by two tiles of sums, two of a, two of b: all that there are.
struct AmxTiles {
  static constexpr std::int64_t rows = 16, row_bytes = 64;  // the greatest
  static constexpr std::int64_t columns = 16;               // of sums, in f32
  static constexpr std::int64_t steps = 16, k = 32;         // pairs of k in a row of a, and how many k they are
  static constexpr std::int64_t most = 2;                   // along rows, and along columns
  static constexpr int sum(int row, int column) { return 2 * row + column; }
  static constexpr int a(int row) { return 4 + row; }
  static constexpr int b(int column) { return 6 + column; }
};

/// The operand of ldtilecfg.
struct AmxConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(AmxConfiguration) == 64);

/// Tiles of a and b that follow each other: a of 64 bytes of k, b of 16 rows of pairs, rows `b_step` apart.
struct AmxRun {
  const void *a, *b;
  std::int64_t a_row, b_step, tiles;  // at least one tile
};

/// sums = the sums of all runs, in order, or sums += if `resume`; a row of sums is as long as its tiles.
using AmxFunction = void (*)(const AmxRun* runs, std::int64_t count, float* sums, std::int64_t resume);

}  // namespace gradus::cpu_backend
