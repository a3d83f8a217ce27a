/// Calls of regions are replaced by their bodies, attention in blocks and samples of images by their definitions.
#include <algorithm>
#include <functional>
#include <utility>
#include "gradus/compiler/passes.h"
#include "gradus/graph/applications.h"
#include "gradus/graph/region.h"
#include "gradus/graph/rewriter.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/attention_ops.h"
#include "gradus/ops/sample_ops.h"

namespace gradus {
namespace {

/// The definition of a value that is to be replaced; else empty.
using RegionOf = std::function<Region(const Graph& graph, const Value& v)>;

Region called_region(const Graph&, const Value& v) {
  return v.op && v.op->inlined ? v.op->inlined(v.op.attributes()) : Region();
}
bool is_attention(const Value& v) { return v.op && (v.op.as<BlockedAttention>() || v.op.as<AttentionGradient>()); }
bool is_sample(const Value& v) { return v.op && v.op.as<LinearSample>(); }
std::vector<Spec> specs_of_operands(const Graph& graph, const Value& v) {
  std::vector<Spec> specs;
  for (int operand : v.in) specs.push_back(graph[operand].spec);
  return specs;
}
Region attention_region(const Graph& graph, const Value& v, SumOrder order) {
  return is_attention(v) ? attention_definition(v.op, specs_of_operands(graph, v), order) : Region();
}
Region sample_region(const Graph& graph, const Value& v) {
  return is_sample(v) ? linear_sample_definition(v.op, specs_of_operands(graph, v)) : Region();
}

class Inliner {
 public:
  explicit Inliner(RegionOf region_of) : region_of_(std::move(region_of)) {}
  /// Copies `graph`, whose inputs stand for the new graph's `inputs`; gives its outputs.
  std::vector<int> copy(const Graph& graph, std::span<const int> inputs, std::uint32_t scope) {
    GraphRewriter places(graph, made);
    for (std::size_t k = 0; k < inputs.size(); ++k) places.set(graph.inputs[k], inputs[k]);
    copy_values(graph, places, scope);
    std::vector<int> outputs = graph.outputs;
    places.rename(outputs);
    return outputs;
  }
  /// Copies a whole graph, its own inputs included.
  void copy_whole(const Graph& graph) {
    GraphRewriter places(graph, made);
    for (int i : graph.inputs) places.keep(i);
    copy_values(graph, places, 0);
    places.finish();
  }
  Graph made;

 private:
  void copy_values(const Graph& graph, GraphRewriter& places, std::uint32_t scope) {
    for (int i = 0; i < graph.size(); ++i) {
      if (graph[i].is_input()) continue;
      Value v = places.renamed(i);
      if ((v.scope & ~gradient_scope) == 0) v.scope |= scope;
      const Region region = region_of_(made, v);
      if (region) places.set(i, result_of(v, region));
      else places.replace(i, std::move(v));
    }
  }

  /// Siblings share one copy of their region.
  int result_of(const Value& call, const Region& region) {
    const auto output = static_cast<std::size_t>(call.op.has_siblings() ? call.op.output() : 0);
    const auto [number, is_new] = calls_.find_or_add(call.op, call.in);
    if (is_new) {
      outputs_.emplace_back();
      outputs_[number] = copy(region.graph(), call.in, call.scope);
    }
    return outputs_[number][output];
  }

  const RegionOf region_of_;
  Applications<int> calls_;
  Numbered<std::vector<int>> outputs_;  // per call
};

void replace_by_regions(Graph& graph, RegionOf region_of) {
  Inliner inliner(std::move(region_of));
  inliner.copy_whole(graph);
  graph = std::move(inliner.made);
}

}  // namespace

void inline_calls(Graph& graph) {
  const auto calls = [](const Value& v) { return v.op && v.op->inlined; };
  if (std::ranges::any_of(graph.values, calls)) replace_by_regions(graph, called_region);
}

void compose_attention(Graph& graph) { compose_attention(graph, SumOrder::contract); }

void compose_attention(Graph& graph, SumOrder order) {
  inline_calls(graph);
  if (std::ranges::any_of(graph.values, is_attention))
    replace_by_regions(graph, [order](const Graph& of, const Value& v) { return attention_region(of, v, order); });
}

void compose_samples(Graph& graph) {
  inline_calls(graph);
  if (std::ranges::any_of(graph.values, is_sample)) replace_by_regions(graph, sample_region);
}

}  // namespace gradus
