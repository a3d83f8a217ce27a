/// TargetModel: the device that a program is compiled for, as passes see it: its caches, and the cost of moving a byte
/// beside that of computing. Nothing else in compiler/ depends on a device. No bit of a result depends on a number
/// here.
#pragma once
#include <cstdint>
#include <string>

namespace gradus {

/// The numbers are for a processor with caches of 0.25 to 2 MiB a core and some MiB for all. Each was chosen by
/// measurements on such machines; docs/decisions/compiler.md has them.
struct TargetModel {
  const char* name = "cpu";

  // ---- Rematerialization (rederive, remake, residuals).
  /// This many instructions on an element cost as much as moving a byte to or from memory. Streams from the
  /// second-level cache would make it two, but values that wait for a gradient come from farther.
  double instructions_per_byte = 4;
  /// This many instructions more are worth a byte of memory that would be in use until then. By time alone a tanh would
  /// rather be kept: its 90 instructions take as long as its eight bytes.
  double instructions_per_kept_byte = 16;
  /// Values smaller than this stay in the caches until they are read.
  std::int64_t least_moved_bytes = 256 << 10;
  /// If more than this is written between two readers, the value that the first one read has left the caches. It is
  /// then read from memory, whether it was kept or stored again.
  std::int64_t most_cached_bytes = 8 << 20;
  /// Nanoseconds that one more kernel costs besides its work.
  double kernel_overhead_ns = 200;

  // ---- Fusion.
  /// The most formulas in one kernel. With more, its code takes longer to make than the memory traffic is worth, and
  /// registers run out.
  std::size_t most_fused = 256;
  /// The shortest row that loops walk by vectors. Shorter rows are better read contiguously.
  std::int64_t least_row_elements = 16;

  // ---- Products.
  /// The most steps of the chains of a product that are done at a time. Longer sums pause in memory.
  std::int64_t deepest_product = 1024;
  /// The smallest result, in elements, of a product that formulas join. For smaller ones nothing is gained.
  std::int64_t least_joined_elements = 1024;
  /// The smallest product that is no gradient of weights and that formulas join. Smaller ones are still in the caches
  /// when they are read, and a pass over them costs less than dividing tiles into pieces.
  std::int64_t least_joined_bytes = 16 << 20;
  /// Weights of these sizes stay in the caches of the cores that update them (the choice `turns`).
  std::int64_t least_weights_in_turns = 64 << 10, most_weights_in_turns = 4 << 20;
};

/// A line for explain().
std::string to_text(const TargetModel& target);

}  // namespace gradus
