/// Graphs as the text is made from them: passed, of known sizes, down to the bodies of branches and loops.
#include <algorithm>
#include <map>
#include <utility>
#include "gradus/backend/xla/stablehlo.h"
#include "gradus/base/numbered.h"
#include "gradus/compiler/passes.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/graph/evaluate.h"
#include "gradus/graph/extents.h"
#include "gradus/ops/attention_ops.h"
#include "gradus/ops/control_ops.h"

namespace gradus::xla {
namespace {

class Preparation {
 public:
  Preparation(std::span<const std::int64_t> symbols, std::vector<std::string> disable)
      : symbols_(symbols), disable_(std::move(disable)) {}

  Graph prepared(Graph graph) {
    compose_attention(graph, SumOrder::any);  // by definition: only the processor computes attention in blocks
    compose_samples(graph);
    run_graph_passes(graph, disable_);
    fix_sizes(graph);
    if (!is_disabled(disable_, "residuals")) keep_residuals(graph, TargetModel());  // one text for all devices
    Changed changed;
    for (Value& v : graph.values)
      if (v.op && !v.op.regions().empty()) v.op = changed.of(v.op, [&](const Region& r) { return of_passed(r); });
    return graph;
  }

 private:
  /// Branches and loops of a graph with other regions, which are made once for all results of one.
  class Changed {
   public:
    template <class Change> AnyOp of(const AnyOp& op, Change change) {
      if (!op.has_siblings()) return with_regions(op, change);
      const AnyOp first = op.sibling(0);
      const auto known = known_.find(first.record());
      const AnyOp& other =
          known != known_.end()
              ? known->second.second
              : known_.emplace(first.record(), std::pair{first, with_regions(first, change)}).first->second.second;
      return other.sibling(op.output());
    }

   private:
    std::map<const OpRecord*, std::pair<AnyOp, AnyOp>> known_;  // the first keeps its record
  };

  void fix_sizes(Graph& graph) {
    if (graph.symbols() == 0) return;
    std::vector<std::int64_t> numbers;
    Changed changed;
    for (Value& v : graph.values) {
      v.spec.shape = v.spec.shape.evaluated(symbols_);
      if (!v.op) continue;
      if (!v.op.regions().empty()) v.op = changed.of(v.op, [&](const Region& r) { return of_known_sizes(r); });
      numbers.clear();
      if (Extents::add(v.op, numbers)) {
        for (std::int64_t& d : numbers)
          if (dimension::is_symbolic(d)) d = dimension::evaluate(d, symbols_);
        v.op = Extents::replaced(v.op, numbers);
      }
      if (v.op.regions().empty()) v.op = evaluated(v.op, symbols_);  // padding, groups: attributes that are no extents
    }
  }

  /// Calls within have given way before, since nothing else looks into them.
  Region of_known_sizes(const Region& region) {
    if (!region || region.symbols() == 0) return region;
    Graph graph = region.graph();
    inline_calls(graph);
    fix_sizes(graph);
    return Region(std::move(graph));
  }
  Region of_passed(const Region& region) { return region ? Region(prepared(region.graph())) : region; }

  template <class Change> static AnyOp with_regions(const AnyOp& op, Change change) {
    if (const Cond* cond = op.as<Cond>()) {
      Cond other = *cond;
      other.if_true = change(cond->if_true), other.if_false = change(cond->if_false);
      return AnyOp::of(other);
    }
    if (const Scan* scan = op.as<Scan>()) {
      Scan other = *scan;
      other.body = change(scan->body), other.last = change(scan->last);
      return AnyOp::of(other);
    }
    if (const While* loop = op.as<While>()) {
      While other = *loop;
      other.condition = change(loop->condition), other.body = change(loop->body);
      return AnyOp::of(other);
    }
    return op;
  }

  std::span<const std::int64_t> symbols_;
  std::vector<std::string> disable_;
};

}  // namespace

Graph prepared_for_stablehlo(Graph graph, std::span<const std::int64_t> symbols,
                             const std::vector<std::string>& disable) {
  return Preparation(symbols, disable).prepared(std::move(graph));
}

}  // namespace gradus::xla
