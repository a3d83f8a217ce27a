/// A graph as StableHLO text, which every PJRT plugin compiles: the text half of the backend of accelerators. No MLIR
/// library is needed. lowering.h has the tables by which ops are written.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/graph/graph.h"

namespace gradus::xla {

struct StableHloOptions {
  /// Per output of the graph: the input whose memory it takes over (tf.aliasing_output), or -1. Empty: none.
  std::vector<int> donated = {};
  /// For products and convolutions: all bits of f32. Else the platform's default, which is bf16 on a TPU.
  bool highest_precision = false;
  /// True if the platform's maximum and minimum give NaN if an operand is NaN, as StableHLO defines. XLA's on
  /// processors do not: then a reduction is written with a comparison of its own.
  bool extrema_keep_nan = true;
  /// This many iterations of a loop with a known count are written as one, if its body is small.
  int unrolled = 1;
  /// The number of devices that run the text together; 0: it is for one, and ops that join shards are refused.
  int replicas = 0;
  /// Switches, for tests: "functions" writes all formulas as recorded.
  std::vector<std::string> disable = {};
};

/// A possible fault of the data.
struct DataCheck {
  std::string message;  // with {value} and {index} in the places of numbers
  /// Throws the OutOfRange that the processor throws.
  [[noreturn]] void fail(std::int64_t value, std::int64_t index) const;
};

/// The words of a fault state, each an i64.
inline constexpr std::int64_t fault_words = 5;

struct StableHloModule {
  std::string text;  // deterministic: the same bytes at every run
  /// Number k + 1 in the fault state's first word means checks[k].
  std::vector<DataCheck> checks;
  /// True if the module has one more argument and one more result, both last: the fault state, i64[fault_words]:
  ///   0: the number of a check, or 0 as long as nothing failed;
  ///   1: the offending value;
  ///   2: the fingerprint of the module that failed;
  ///   3: how many runs were right: the argument's and one, until one fails;
  ///   4: the position of the offending value.
  /// If the argument's first word is not 0, it is passed on. If that of the result is not 0, each donated result is
  /// what its input was. A module that donates has a state even if it has no checks: it may run behind one that failed.
  bool has_fault_state = false;
  std::int64_t fingerprint = 0;  // of the text
};

/// `graph` as to_stablehlo() takes it: after the graph passes with attention by definition, loops with the residuals of
/// their gradients, all sizes known: `symbols` are the values of its symbols. Regions, too.
Graph prepared_for_stablehlo(Graph graph, std::span<const std::int64_t> symbols,
                             const std::vector<std::string>& disable = {});

/// Throws Unavailable before anything runs, naming op, dtype and device, for ops that cannot be written. `device` is
/// the name in that message.
StableHloModule to_stablehlo(const Graph& graph, const StableHloOptions& options = {}, std::string_view device = "xla");

}  // namespace gradus::xla
