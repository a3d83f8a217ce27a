/// Calls of regions give way to what they call, and attention in blocks to what it stands for.
#include <algorithm>
#include <unordered_map>
#include "gradus/base/hash.h"
#include "gradus/compiler/passes.h"
#include "gradus/graph/region.h"
#include "gradus/ops/attention_blocks.h"

namespace gradus {
namespace {

/// What a value that is to give way stands for; else empty.
using RegionOf = Region (*)(const Graph& graph, const Value& v);

Region called_region(const Graph&, const Value& v) {
  return v.op && v.op->inlined ? v.op->inlined(v.op.attributes()) : Region();
}
bool is_attention(const Value& v) { return v.op && (v.op.as<Attention>() || v.op.as<AttentionGradient>()); }
Region attention_region(const Graph& graph, const Value& v) {
  if (!is_attention(v)) return {};
  std::vector<Spec> specs;
  for (int operand : v.in) specs.push_back(graph[operand].spec);
  return attention_definition(v.op, specs);
}

class Inliner {
 public:
  explicit Inliner(RegionOf region_of) : region_of_(region_of) {}
  /// Copies `graph`, whose inputs stand for `inputs` of what is made; gives its outputs.
  std::vector<int> copy(const Graph& graph, std::span<const int> inputs, std::uint32_t scope) {
    std::vector<int> renamed(static_cast<std::size_t>(graph.size()), -1);
    for (std::size_t k = 0; k < inputs.size(); ++k) renamed[static_cast<std::size_t>(graph.inputs[k])] = inputs[k];
    for (int i = 0; i < graph.size(); ++i) {
      if (graph[i].is_input()) continue;
      Value v = graph[i];
      for (int& operand : v.in) operand = renamed[static_cast<std::size_t>(operand)];
      if (v.scope == 0) v.scope = scope;
      const Region region = region_of_(made, v);
      renamed[static_cast<std::size_t>(i)] = region ? result_of(v, region) : made.add(std::move(v));
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
  int result_of(const Value& call, const Region& region) {
    const AnyOp first = call.op.has_siblings() ? call.op.sibling(0) : call.op;
    std::uint64_t hash = first.hash();
    for (int operand : call.in) hash = mix(hash, static_cast<std::uint64_t>(operand));
    const auto output = static_cast<std::size_t>(call.op.has_siblings() ? call.op.output() : 0);
    for (auto [it, last] = known_.equal_range(hash); it != last; ++it)
      if (it->second.op == first && it->second.in == call.in) return it->second.outputs[output];
    std::vector<int> outputs = copy(region.graph(), call.in, call.scope);
    return known_.emplace(hash, Application{first, call.in, std::move(outputs)})->second.outputs[output];
  }

  const RegionOf region_of_;
  std::unordered_multimap<std::uint64_t, Application> known_;
};

void replace_by_regions(Graph& graph, RegionOf region_of) {
  Inliner inliner(region_of);
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

}  // namespace

void inline_calls(Graph& graph) {
  const auto calls = [](const Value& v) { return v.op && v.op->inlined; };
  if (std::ranges::any_of(graph.values, calls)) replace_by_regions(graph, called_region);
}

void compose_attention(Graph& graph) {
  inline_calls(graph);
  if (std::ranges::any_of(graph.values, is_attention)) replace_by_regions(graph, attention_region);
}

}  // namespace gradus
