/// Chains of one instruction from registers: the arithmetic that a thread can do at most, which thread_rates() and the
/// bench's limits measure.
#pragma once
#include <cstddef>

namespace gradus::cpu_backend::rate_kernels {

/// Products that stand side by side: as many as hide the latency of an instruction of which two start in each cycle,
/// and fit into the registers.
inline constexpr int chains = 12;
/// Products of tiles in a round of multiply_tiles(), and the operations of each.
inline constexpr int tile_products = 4, tile_operations = 16 * 16 * 32 * 2;

/// Operations of `rounds` of an instruction that does `operations`.
constexpr double operations_of(long rounds, int operations) {
  return static_cast<double>(rounds) * chains * operations;
}

/// A chain begins with `first` and returns a result, so that a compiler neither knows nor leaves out the computation;
/// its instruction does so many operations.
struct Chain {
  float (*run)(long rounds, float first);
  int operations;
};
/// Chains of fma by vectors of 64 bytes, or by those that every processor of this architecture has that computes here.
/// The caller checks that this one has the instructions, here and below.
Chain multiply_adds(bool by_64_bytes);
/// Products of pairs of bf16, and two by two tiles of sums, as products have them: each waits for its last sum. On
/// x86-64 alone.
Chain multiply_pairs();
float multiply_tiles(long rounds);
/// Multiplies n numbers in place, a multiple of 16.
void scale(float* x, std::size_t n, bool by_64_bytes);

}  // namespace gradus::cpu_backend::rate_kernels
