/// How ops become StableHLO: the input of a row of a table, and the tables.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/backend/xla/hlo_writer.h"
#include "gradus/backend/xla/stablehlo.h"
#include "gradus/graph/graph.h"

namespace gradus::xla {

/// The state of a text under way: its lines, and the possible faults of the data.
class Lowering {
 public:
  Lowering(const StableHloOptions& given, std::string_view device_name) : options(given), device(device_name) {}

  HloWriter out;
  const StableHloOptions& options;
  const std::string device;

  /// "DEFAULT" or "HIGHEST".
  std::string_view precision() const { return options.highest_precision ? "HIGHEST" : "DEFAULT"; }

  /// Elements of `values` outside [0, limit) set the fault state, unless it is set. `message`: see DataCheck.
  void check_range(const HloValue& values, std::int64_t limit, std::string message);
  /// One word of a state, and the state with another number there.
  HloValue word(const HloValue& state, std::int64_t number);
  HloValue with_word(const HloValue& state, std::int64_t word, const HloValue& number);
  /// True, one boolean, while nothing has failed.
  HloValue is_fine();
  /// The fault state in this block. Blocks that may set it take it in and hand it out.
  HloValue fault;
  std::vector<DataCheck> checks;
  int channels = 0;  // of exchanges between replicas so far
};

/// One op of a graph, with its operands.
struct Site {
  Lowering& to;
  const Graph& graph;
  const Value& v;
  HloValues in;
  /// The text's value of another value of the graph, which comes before this one.
  HloValues const& values;

  HloWriter& out() const { return to.out; }
  const Spec& spec() const { return v.spec; }
  /// The op of the value that operand k is.
  const Value& operand(std::size_t k) const { return graph[v.in[k]]; }
  /// Unavailable: this op of this dtype cannot run on the device.
  [[noreturn]] void refuse(std::string_view why) const;
  /// The message of a check: the op, the fault, the layer.
  std::string message(std::string_view op, std::string_view what) const;
};

/// The value that i is a view of, or value i.
const Value& behind_views(const Graph& graph, int i);

/// A row of a table.
struct Row {
  std::string_view op;
  HloValue (*write)(const Site&);
};

// One table a family; stablehlo.cpp looks through all of them.
std::span<const Row> view_rows();
std::span<const Row> product_rows();      // matmul, convolutions
std::span<const Row> window_rows();       // pooling
std::span<const Row> index_rows();        // gather, scatter, checks
std::span<const Row> sequence_rows();     // sorting, running sums
std::span<const Row> elimination_rows();  // linear systems
std::span<const Row> incomplete_rows();   // incomplete gamma, beta; zeta
/// For a program that several devices run together: ops that join all of them. On one device these ops are refused.
std::span<const Row> replica_rows();
/// x: [n, ...] -> [replicas * n, ...]: the values of all devices, contiguous.
HloValue write_gathered(Lowering& to, const HloValue& x);

/// An op that no row can write, for the documentation, and the reason.
struct Refusal {
  std::string_view op, why;
};
std::span<const Refusal> refusals();

HloValue write_reduction(const Site& site);

/// All results of a branch or a loop; results not in `wanted` may be left out.
HloValues write_control(const Site& site, const std::vector<bool>& wanted);

/// Writes the values of `graph` that its outputs need, its inputs being `inputs`, and gives the outputs in `wanted`.
HloValues write_graph(Lowering& to, const Graph& graph, const HloValues& inputs, const std::vector<bool>& wanted = {});

}  // namespace gradus::xla
