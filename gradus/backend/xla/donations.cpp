/// Outputs that are made in the memory of inputs.
#include <algorithm>
#include "gradus/backend/xla/xla_executable.h"
#include "gradus/graph/per_value.h"

namespace gradus::xla {
namespace {

/// How many values are looked at for an input near an output.
constexpr int most_looked_at = 64;

/// The first of `free` that `output` is a formula of, element by element; -1: none.
int input_near(const Graph& graph, int output, const std::vector<int>& free) {
  std::vector<int> waiting{output};
  for (int looked_at = 0; looked_at < static_cast<int>(waiting.size()) && looked_at < most_looked_at; ++looked_at) {
    const int i = waiting[static_cast<std::size_t>(looked_at)];
    const bool fits =
        graph[i].spec.dtype == graph[output].spec.dtype && graph[i].spec.shape == graph[output].spec.shape;
    if (fits && std::ranges::count(free, i) > 0) return i;
    if (!graph[i].op || !(graph[i].op.is_elementwise() || graph[i].op.is_alias())) continue;
    for (const int operand : graph[i].in)
      if (std::ranges::count(waiting, operand) == 0) waiting.push_back(operand);
  }
  return -1;
}

}  // namespace

std::vector<int> donations(const Graph& graph, const std::vector<int>& replaces) {
  std::vector<int> taken(graph.outputs.size(), -1);
  std::vector<int> free = graph.dying;
  const auto place_of = [&](int input) {
    return static_cast<int>(std::ranges::find(graph.inputs, input) - graph.inputs.begin());
  };
  for (std::size_t k = 0; k < std::min(replaces.size(), taken.size()); ++k) {
    if (replaces[k] < 0) continue;
    const int input = graph.inputs[static_cast<std::size_t>(replaces[k])];
    if (std::erase(free, input) > 0) taken[k] = replaces[k];
  }
  if (!replaces.empty()) return taken;  // others are results, whose memory is not offered
  for (std::size_t k = 0; k < taken.size(); ++k) {
    const int input = input_near(graph, graph.outputs[k], free);
    if (input < 0 || input == graph.outputs[k]) continue;
    std::erase(free, input);
    taken[k] = place_of(input);
  }
  return taken;
}

}  // namespace gradus::xla
