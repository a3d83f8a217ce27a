/// What the passes know of the device that a program is compiled for: its caches, and what moving a byte costs beside
/// computing. Nothing else in compiler/ depends on a device, and no bit of a result depends on a number here.
#pragma once
#include <cstdint>
#include <string>

namespace gradus {

/// Of a processor with caches of 0.25 to 2 MiB a core and some MiB for all. Each number was chosen by measurements on
/// such machines; docs/decisions/compiler.md has them.
struct TargetModel {
  const char* name = "cpu";

  // ---- Rematerialization (rederive, remake, residuals).
  /// So many instructions on an element cost as much as a byte to or from memory. Streams from the second-level cache
  /// would make it two, but what waits for a gradient comes from farther.
  double instructions_per_byte = 4;
  /// And so many more what a byte of memory costs that is in use until then. By time alone a tanh would rather be kept,
  /// whose 90 instructions take as long as its eight bytes do.
  double instructions_per_kept_byte = 16;
  /// Less than this stays in the caches until it is read.
  std::int64_t least_moved_bytes = 256 << 10;
  /// So much written between two readers, and what the first one read has left the caches: it is read from memory
  /// whether it was kept or stored anew.
  std::int64_t most_cached_bytes = 8 << 20;
  /// Nanoseconds that one more kernel costs besides its work.
  double kernel_overhead_ns = 200;

  // ---- Fusion.
  /// Past so many formulas the code of one kernel takes longer to make than its memory traffic is worth, and registers
  /// run out.
  std::size_t most_fused = 256;
  /// Loops walk rows by vectors of so many elements: shorter rows are better read one behind the other.
  std::int64_t least_row_elements = 16;

  // ---- Products.
  /// So many steps of the chains of a product are done at a time; of more, sums pause in memory.
  std::int64_t deepest_product = 1024;
  /// Formulas join products from so many elements on; of fewer nothing is gained.
  std::int64_t least_joined_elements = 1024;
  /// Formulas join products that are not gradients of weights from this size on: smaller ones are still in the caches
  /// when they are read, and pieces cost tiles more than a pass over those does.
  std::int64_t least_joined_bytes = 16 << 20;
  /// Weights of these sizes stay in the caches of the cores that update them (turns).
  std::int64_t least_weights_in_turns = 64 << 10, most_weights_in_turns = 4 << 20;
};

/// A line for explain().
std::string to_text(const TargetModel& target);

}  // namespace gradus
