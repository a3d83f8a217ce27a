/// Transforms of Winograd's tiles, of vectors of adjacent floats; place i of a result or source is i * step from its
/// beginning. B' = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1], G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1],
/// A' = [1 1 1 0; 0 1 -1 -1]. The last vector of a row may overlap the one before it.
#pragma once
#include <cstdint>
#include "gradus/backend/cpu/isa.h"

namespace gradus::library::winograd {

/// The transforms for one instruction set. All give the same bits.
struct Transforms {
  /// Rows [begin, end) of B' d B, of the 4 x 4 positions that `from` points at.
  void (*tile)(const float* const* from, std::int64_t channels, float* to, std::int64_t step, std::int64_t begin,
               std::int64_t end);
  /// G g G', of the 3 x 3 taps of a channel.
  void (*weights)(const float* const* taps, std::int64_t columns, float* to, std::int64_t step);
  /// A' m A: the 2 x 2 targets of a tile.
  void (*sums)(const float* from, std::int64_t step, std::int64_t columns, float* const* to);
  /// Rows [begin, end) of A y A', of 2 x 2 windows.
  void (*windows)(const float* const* from, std::int64_t channels, float* to, std::int64_t step, std::int64_t begin,
                  std::int64_t end);
  /// G' m G, the 3 x 3 taps of a channel, where m is the sum over chunks.
  void (*chunks)(const float* from, std::int64_t step, std::int64_t chunks, std::int64_t chunk_step,
                 std::int64_t columns, float* const* taps);
};

/// By vectors of 32, of 64, and of 16 bytes.
extern const Transforms transforms_by_avx2, transforms_by_avx512, transforms_by_neon;

/// The transforms for rows of `channels` channels: at least 8, a vector of 32 bytes. Vectors of 64 bytes need 16
/// channels.
inline const Transforms& transforms_for(std::int64_t channels) {
#if defined(__x86_64__)
  const bool wide = cpu_backend::processor().kernel_vector_bytes == 64 && channels >= 16;
  return wide ? transforms_by_avx512 : transforms_by_avx2;
#else
  static_cast<void>(channels);
  return transforms_by_neon;
#endif
}

}  // namespace gradus::library::winograd
