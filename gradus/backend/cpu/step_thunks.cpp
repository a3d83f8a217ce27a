/// Lowering of steps: the parts of a program join here, with code or without.
#include "gradus/backend/cpu/step_thunks.h"
#include <algorithm>
#include "gradus/backend/cpu/codegen/lower.h"
#include "gradus/backend/cpu/interpreter/lower.h"
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/kernels/library.h"
#include "gradus/backend/cpu/run/binding.h"
#include "gradus/backend/cpu/run/control.h"
#include "gradus/compiler/pipeline.h"

namespace gradus {
namespace {

using ThunksOfSteps = std::vector<std::vector<Thunk>>;
using LowerControl = Thunk (*)(std::shared_ptr<const Graph>, const Step&, const CompileOptions&, Lowered&);

/// Adds the thunks of all steps to `out`. `loops`: per step those of its loops.
void add_thunks(const std::shared_ptr<const Graph>& graph, std::span<const Step> steps, const CompileOptions& options,
                ThunksOfSteps loops, LowerControl control, Lowered& out) {
  for (std::size_t s = 0; s < steps.size(); ++s) {
    std::vector<Thunk> thunks = std::move(loops[s]);
    switch (steps[s].kind) {
      case Step::Kind::loops: break;
      case Step::Kind::library: thunks = lower_library(graph, steps[s], options, out); break;
      case Step::Kind::control: thunks.push_back(control(graph, steps[s], options, out)); break;
      case Step::Kind::product: thunks = {lower_product(graph, steps[s], std::move(thunks.at(0)))}; break;
    }
    for (Thunk& thunk : thunks) {
      thunk.step = static_cast<int>(s);
      out.thunks.push_back(std::move(thunk));
    }
  }
}

/// Sets the numbers of a thunk. Memory of a team that works together counts if some team would.
void settle(Thunk& thunk, const BoundThunk& bound) {
  const bool together = may_work_together(bound);
  thunk.bytes = bound.bytes + bound.second.bytes;
  thunk.flops = bound.flops + bound.second.flops;
  thunk.worker_scratch = std::max(bound.worker_scratch, bound.second.worker_scratch);
  if (together) thunk.worker_scratch = std::max(thunk.worker_scratch, bound.scratch_together);
  thunk.shared_scratch = together || !bound.together ? bound.shared_scratch : 0;
  thunk.bind = {};
}

}  // namespace

Lowered lower(const std::shared_ptr<const Graph>& graph, std::span<const Step> steps, const CompileOptions& options) {
  Lowered lowered{.slots = graph->size(), .balances = !is_disabled(options.disable, "balance")};
  if (options.keeps_code) lowered.kept = std::make_shared<KeptCode>();
  const bool shares = !is_disabled(options.disable, "share");
  ThunksOfSteps loops = options.tier == Tier::compiled
                            ? cpu_backend::lower_loops(*graph, steps, cpu_backend::isa(), lowered, shares)
                            : interpreter::lower_loops(graph, steps, lowered);
  add_thunks(graph, steps, options, std::move(loops), lower_control, lowered);
  if (options.profile) lowered.times = std::make_shared<KernelTimes>(lowered.thunks.size());
  return lowered;
}

Lowered outline(const Graph& graph, std::span<const Step> steps, const CompileOptions& options,
                KnownFormulas& formulas) {
  const std::shared_ptr<const Graph> borrowed(std::shared_ptr<const Graph>(), &graph);
  Lowered outlined{.slots = graph.size()};
  ThunksOfSteps loops = cpu_backend::outline_loops(graph, steps, formulas, outlined);
  add_thunks(borrowed, steps, options, std::move(loops), outline_control, outlined);
  for (Thunk& thunk : outlined.thunks)
    if (thunk.bind) settle(thunk, thunk.bind(options.symbols));
  return outlined;
}

}  // namespace gradus
