/// Equal values become one, and values that no output needs are dropped.
#include <unordered_map>
#include "gradus/compiler/passes.h"
#include "gradus/graph/rewriter.h"

namespace gradus {

void eliminate_common_subexpressions(Graph& graph) {
  Graph kept;
  kept.values.reserve(graph.values.size());  // growing would touch twice the memory
  GraphRewriter places(graph, kept);
  std::unordered_multimap<std::uint64_t, int> seen;
  const PerValue<bool> needed = needed_with_inputs(graph);
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
    if (!needed[i]) continue;
    Value v = std::move(graph[i]);
    places.rename(v.in);
    places.set(i, keep(std::move(v)));
  }
  places.finish();
  graph = std::move(kept);
}

}  // namespace gradus
