/// Chains of one instruction from registers: the arithmetic that a thread can do at most, which thread_rates() and the
/// bench's limits measure.
#pragma once

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

// Each begins with `first` and returns a result, so that a compiler neither knows nor leaves out the computation. The
// caller checks that the processor has the instructions.
float multiply_add_512(long rounds, float first);
float multiply_add_256(long rounds, float first);
float multiply_pairs_512(long rounds, float first);
/// Two by two tiles of sums, as products have them: each waits for its last sum.
float multiply_tiles(long rounds);

}  // namespace gradus::cpu_backend::rate_kernels
