/// A model of both times, of a few constants measured on two cores, and the choices that follow from it. Decisions 119
/// and 192 have the reasons.
#include "gradus/backend/tiers.h"
#include <algorithm>
#include <unordered_set>
#include "gradus/base/hash.h"
#include "gradus/graph/known_formulas.h"
#include "gradus/graph/per_value.h"
#include "gradus/scalar/rare_parts.h"

namespace gradus {
namespace {

// Interpreted, a value goes through memory, mostly fresh pages, and each instruction of its formula through the first
// cache. The interpreter was timed with the random first values of a small GPT, the compiler with its training step.
constexpr double ns_per_element = 2, ns_per_element_and_instruction = 0.25;
constexpr double ns_per_interpreted_run = 5e3;
constexpr double ns_per_program = 5e6, ns_per_new_value = 1e5, ns_per_new_instruction = 1.5e4;
constexpr double most_instructions = 200, usual_ns_per_value = 3e5;  // most programs are far from these

/// Values whose code is generated once: all that are computed alike from their inputs on.
class Structures {
 public:
  explicit Structures(const Graph& graph) : graph_(graph), hashes_(graph) {}

  /// True if value `i` has a new structure.
  bool add(int i) { return seen_.insert(hashes_[i] = hash(i)).second; }

 private:
  std::uint64_t hash(int i) const {
    const Value& v = graph_[i];
    std::uint64_t sum = mix(static_cast<std::uint64_t>(v.spec.dtype), v.is_constant ? v.constant + 1 : 0);
    if (!v.op) return sum;
    for (int operand : v.in) sum = mix(sum, hashes_[operand]);
    // Extents do not matter to code for any number of elements.
    if (v.op.is_view() && graph_[v.in[0]].spec.shape.size() == 1) return sum;
    if (v.op.is_index()) return mix(sum, hash(v.op.index_formula()));
    sum = mix(sum, v.op.hash());
    return v.op.is_elementwise() ? sum : mix(sum, hash_of(v.spec));
  }
  static std::uint64_t hash(const scalar::Code& code) {
    std::uint64_t sum = static_cast<std::uint64_t>(code.result);
    for (const scalar::Instruction& in : code.instructions)
      sum = mix(mix(sum, static_cast<std::uint64_t>(in.op) << 8 | static_cast<std::uint64_t>(in.type)), in.bits);
    return sum;
  }

  const Graph& graph_;
  PerValue<std::uint64_t> hashes_;
  std::unordered_set<std::uint64_t> seen_;
};

/// True if the interpreter works on `v`; all else is read in place, or the same kernel of a library in both tiers.
bool is_computed(const Value& v) { return v.op.is_elementwise() || v.op.is_reduction(); }

double elements_of(const Graph& graph, const Value& v, std::span<const std::int64_t> symbols) {
  const Shape& walked = v.op.is_reduction() ? graph[v.in[0]].spec.shape : v.spec.shape;
  return static_cast<double>(walked.evaluated(symbols).size());
}

/// Nanoseconds of one interpreted run, and of generating code.
struct Times {
  double interpreted, compiled;
};
Times times_by_formulas(const Graph& graph, std::span<const std::int64_t> symbols) {
  KnownFormulas formulas;
  Structures structures(graph);
  double interpreted = 0, compiled = ns_per_program;
  for (int i = 0; i < graph.size(); ++i) {
    const Value& v = graph[i];
    const bool is_new = structures.add(i);
    if (!is_computed(v)) continue;
    const double instructions =
        v.op.is_reduction() ? 1 : static_cast<double>(scalar::usual_instructions(formulas.of(graph, v)));
    interpreted += elements_of(graph, v, symbols) * (ns_per_element + ns_per_element_and_instruction * instructions);
    if (is_new) compiled += ns_per_new_value + ns_per_new_instruction * instructions;
  }
  return {interpreted, compiled};
}

/// True if a branch or a loop stands in the graph. Such a graph is never interpreted, since a loop comes back by
/// itself, and memory that was planned for its body is that of compiled code.
bool has_control(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& v) { return v.op.is_control(); });
}

/// How many interpreted runs take about as long as generating code does, at least 1.
double runs_that_pay(const Graph& graph, std::span<const std::int64_t> symbols) {
  if (has_control(graph)) return 1;
  const auto [interpreted, compiled] = times_by_formulas(graph, symbols);
  return std::max(1.0, compiled / (ns_per_interpreted_run + interpreted));
}

/// Compiling takes about a millisecond an op, so that a long chain has to come back more often before it pays.
int long_chains(const Graph& graph) { return graph.size() / 512; }

}  // namespace

bool is_interpreted_sooner(const Graph& graph, std::span<const std::int64_t> symbols) {
  if (has_control(graph)) return false;  // how often a loop runs is not known
  double elements = 0, values = 0;
  for (const Value& v : graph.values) {
    if (!is_computed(v)) continue;
    elements += elements_of(graph, v, symbols);
    ++values;
  }
  if (elements * (ns_per_element + ns_per_element_and_instruction * most_instructions) < ns_per_program) return true;
  if (elements * ns_per_element > ns_per_program + values * usual_ns_per_value) return false;
  const auto [interpreted, compiled] = times_by_formulas(graph, symbols);
  return interpreted < compiled;
}

/// A structure that comes back after many other runs, as in a second pass over data with a structure for each element,
/// is one of many to compile: it has to come back as often as pays for its own program.
bool is_worth_compiling(const Graph& graph, int sights, std::int64_t between) {
  constexpr std::int64_t few = 32, most = 256;
  std::int64_t patience = 0;
  if (between > few) patience = std::min({between, most, static_cast<std::int64_t>(runs_that_pay(graph, {}))});
  return sights >= 1 + long_chains(graph) + patience;
}

/// A steady loop has fewer: its programs are compiled for their own sizes. Where the interpreter would take longer than
/// compiling, each would be compiled at once.
std::size_t graphs_before_opening(const Graph& graph) { return is_interpreted_sooner(graph) ? 4 : 3; }

int runs_of_open_form(const Graph& open, std::span<const std::int64_t> symbols) {
  constexpr double most = 16;
  return static_cast<int>(std::min(most, runs_that_pay(open, symbols))) * (1 + long_chains(open));
}

int runs_before_code(const Graph& graph, std::span<const std::int64_t> symbols) {
  constexpr double most = 1e6;
  return static_cast<int>(std::min(most, runs_that_pay(graph, symbols)));
}

}  // namespace gradus
