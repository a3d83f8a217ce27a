/// Calls of regions give way to what they call.
#include <unordered_map>
#include "gradus/base/hash.h"
#include "gradus/compiler/passes.h"
#include "gradus/graph/region.h"

namespace gradus {
namespace {

class Inliner {
 public:
  /// Copies `graph`, whose inputs stand for `inputs` of what is made; gives its outputs.
  std::vector<int> copy(const Graph& graph, std::span<const int> inputs, std::uint32_t scope) {
    std::vector<int> renamed(static_cast<std::size_t>(graph.size()), -1);
    for (std::size_t k = 0; k < inputs.size(); ++k) renamed[static_cast<std::size_t>(graph.inputs[k])] = inputs[k];
    for (int i = 0; i < graph.size(); ++i) {
      if (graph[i].is_input()) continue;
      Value v = graph[i];
      for (int& operand : v.in) operand = renamed[static_cast<std::size_t>(operand)];
      if (v.scope == 0) v.scope = scope;
      renamed[static_cast<std::size_t>(i)] = v.op && v.op->inlined ? result_of(v) : made.add(std::move(v));
    }
    std::vector<int> outputs;
    for (int o : graph.outputs) outputs.push_back(renamed[static_cast<std::size_t>(o)]);
    return outputs;
  }
  Graph made;

 private:
  struct Application {
    AnyOp op;
    std::vector<int> in, outputs;
  };

  /// Siblings share one copy of their region.
  int result_of(const Value& call) {
    const AnyOp first = call.op.has_siblings() ? call.op.sibling(0) : call.op;
    std::uint64_t hash = first.hash();
    for (int operand : call.in) hash = mix(hash, static_cast<std::uint64_t>(operand));
    const auto output = static_cast<std::size_t>(call.op.has_siblings() ? call.op.output() : 0);
    for (auto [it, last] = known_.equal_range(hash); it != last; ++it)
      if (it->second.op == first && it->second.in == call.in) return it->second.outputs[output];
    const Region& region = call.op->inlined(call.op.attributes());
    std::vector<int> outputs = copy(region.graph(), call.in, call.scope);
    return known_.emplace(hash, Application{first, call.in, std::move(outputs)})->second.outputs[output];
  }

  std::unordered_multimap<std::uint64_t, Application> known_;
};

}  // namespace

void inline_calls(Graph& graph) {
  bool calls = false;
  for (const Value& v : graph.values) calls = calls || (v.op && v.op->inlined);
  if (!calls) return;
  Inliner inliner;
  std::vector<int> inputs, place(static_cast<std::size_t>(graph.size()), -1);
  for (int i : graph.inputs) {
    inputs.push_back(inliner.made.add(graph[i]));
    place[static_cast<std::size_t>(i)] = inputs.back();
  }
  std::vector<int> outputs = inliner.copy(graph, inputs, 0);
  inliner.made.inputs = std::move(inputs);
  inliner.made.outputs = std::move(outputs);
  for (int d : graph.dying) inliner.made.dying.push_back(place[static_cast<std::size_t>(d)]);
  graph = std::move(inliner.made);
}

}  // namespace gradus
