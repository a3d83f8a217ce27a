/// Equal values become one, and what no output needs is dropped.
#include <unordered_map>
#include "gradus/compiler/passes.h"
#include "gradus/graph/rewriter.h"

namespace gradus {
namespace {

std::vector<bool> find_needed(const Graph& graph) {
  std::vector<bool> needed(static_cast<std::size_t>(graph.size()));
  for (int i : graph.inputs) needed[static_cast<std::size_t>(i)] = true;
  for (int o : graph.outputs) needed[static_cast<std::size_t>(o)] = true;
  for (int i = graph.size() - 1; i >= 0; --i)
    if (needed[static_cast<std::size_t>(i)])
      for (int operand : graph[i].in) needed[static_cast<std::size_t>(operand)] = true;
  return needed;
}

}  // namespace

void eliminate_common_subexpressions(Graph& graph) {
  Graph kept;
  kept.values.reserve(graph.values.size());  // growing would touch twice the memory
  GraphRewriter places(graph, kept);
  std::unordered_multimap<std::uint64_t, int> seen;
  const std::vector<bool> needed = find_needed(graph);
  const auto keep = [&](Value v) {
    if (v.is_input()) return kept.add(std::move(v));
    const std::uint64_t hash = hash_of(v);
    for (auto [it, last] = seen.equal_range(hash); it != last; ++it)
      if (kept[it->second] == v) return it->second;
    const int place = kept.add(std::move(v));
    seen.emplace(hash, place);
    return place;
  };
  for (int i = 0; i < graph.size(); ++i) {
    if (!needed[static_cast<std::size_t>(i)]) continue;
    Value v = std::move(graph[i]);
    places.rename(v.in);
    places.set(i, keep(std::move(v)));
  }
  places.finish();
  graph = std::move(kept);
}

}  // namespace gradus
