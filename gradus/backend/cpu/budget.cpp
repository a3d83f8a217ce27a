/// The memory of a plan, found without making code: the same steps, stages and layout that a program has.
#include "gradus/backend/cpu/budget.h"
#include <algorithm>
#include "gradus/backend/cpu/run/schedule.h"
#include "gradus/backend/cpu/step_thunks.h"
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/base/thread_pool.h"
#include "gradus/compiler/memory_order.h"
#include "gradus/compiler/passes.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/compiler/recompute.h"

namespace gradus {
namespace {

class Planner {
 public:
  explicit Planner(const CompileOptions& options) : options_(options) {}

  std::int64_t bytes(const Graph& graph, const std::vector<Step>& steps, Staging staging) const {
    return bytes(graph, steps, outlined(graph, steps), staging);
  }

  /// All memory that a run allocates, except its outputs.
  PlannedUse whole_use(Graph graph) const {
    const std::vector<Step> order = usual_steps(graph, options_);
    const Lowered outline = outlined(graph, order);
    const bool concurrent = !is_disabled(options_.disable, "concurrency");
    PlannedUse use{.arena_bytes = bytes(graph, order, outline, concurrent ? Staging::early : Staging::in_order),
                   .slots = outline.slots};
    std::int64_t of_worker = 0;
    for (const Thunk& thunk : outline.thunks) of_worker = std::max(of_worker, extent(thunk.worker_scratch));
    if (of_worker > 0) use.arena_bytes += ThreadPool::global().threads() * (of_worker + 128) + 64;
    return use;
  }

  /// One step after the other.
  PlannedMemory use(const Graph& graph, const PerValue<int>& copies) const {
    PlannedMemory use{
        .steps = order_for_memory(graph, fuse(graph, !is_disabled(options_.disable, "fuse"), copies, options_.target),
                                  options_.symbols)};
    const std::vector<Thunk> thunks = outlined(graph, use.steps).thunks;
    const StagePlan schedule = plan_stages(graph, use.steps, no_sharing(graph), thunks, Staging::in_order);
    const std::vector<Interval> intervals = intervals_of(graph, schedule, options_.symbols, scratch_of(thunks));
    Numbered<int> step_of_stage;
    for (const std::vector<int>& stage : schedule.stages) step_of_stage.push_back(thunks[at(stage.at(0))].step);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const Temporary& t = schedule.temporaries[i];
      if (t.first >= static_cast<int>(step_of_stage.size()) || t.last < t.first) continue;  // written by no thunk
      use.temporaries.push_back(
          {t.thunk < 0 ? t.slot : -1, intervals[i].bytes, step_of_stage[t.first], step_of_stage[t.last]});
    }
    use.bytes = lay_out(intervals).bytes;
    use.costs.resize(use.steps.size());
    // At the usual rates: the same budget means the same program, whatever was measured.
    for (const Thunk& thunk : thunks)
      use.costs[thunk.step] += estimated_ns(ThreadRates(), extent(thunk.bytes), extent(thunk.flops));
    return use;
  }

 private:
  static Sharing no_sharing(const Graph& graph) { return {std::vector<int>(graph.outputs.size(), -1)}; }
  Lowered outlined(const Graph& graph, const std::vector<Step>& steps) const {
    return outline(graph, steps, options_, formulas_);
  }
  std::int64_t bytes(const Graph& graph, const std::vector<Step>& steps, const Lowered& outline,
                     Staging staging) const {
    const bool reuse = !is_disabled(options_.disable, "reuse");
    const Sharing sharing = reuse ? plan_sharing(graph, steps) : no_sharing(graph);
    const StagePlan schedule = plan_stages(graph, steps, sharing, outline.thunks, staging);
    return lay_out_arena(schedule, intervals_of(graph, schedule, options_.symbols, scratch_of(outline.thunks)))
        .layout.bytes;
  }
  std::int64_t extent(std::int64_t d) const { return dimension::evaluate(d, options_.symbols); }
  std::function<std::int64_t(int)> scratch_of(const std::vector<Thunk>& thunks) const {
    return [this, &thunks](int thunk) { return extent(thunks[at(thunk)].shared_scratch); };
  }

  const CompileOptions& options_;
  mutable KnownFormulas formulas_;
};

}  // namespace

std::vector<Step> usual_steps(Graph& graph, const CompileOptions& options) {
  return run_step_passes(step_passes(), graph, options.disable, options.target);
}

Plan plan_within_budget(Graph& graph, const CompileOptions& options) {
  const Planner planner(options);
  Graph as_usual = graph;
  Plan plan{.steps = usual_steps(as_usual, options)};
  const bool concurrent = !is_disabled(options.disable, "concurrency");
  const std::int64_t usual = planner.bytes(as_usual, plan.steps, concurrent ? Staging::early : Staging::in_order);
  if (usual <= options.max_bytes) {
    graph = std::move(as_usual);
    return plan;
  }
  const auto use = [&](const Graph& candidate, const PerValue<int>& copies) { return planner.use(candidate, copies); };
  Recomputed recomputed = recompute(graph, options.max_bytes, usual, use, options.target);
  graph = std::move(recomputed.graph);
  return {.steps = std::move(recomputed.use.steps),
          .sharing = {},
          .staging = Staging::in_order,
          .recomputed_bytes = recomputed.bytes};
}

PlannedUse planned_use(Graph graph, const CompileOptions& options) {
  run_graph_passes(graph, options.disable);
  return Planner(options).whole_use(std::move(graph));
}

std::int64_t planned_bytes(Graph graph, std::span<const std::int64_t> symbols) {
  return planned_use(std::move(graph), {.symbols = {symbols.begin(), symbols.end()}}).arena_bytes;
}

}  // namespace gradus
