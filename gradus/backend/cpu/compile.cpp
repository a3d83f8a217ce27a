/// The whole compiler, readable from top to bottom; compiler/pipeline.h has its passes.
#include "gradus/backend/cpu/budget.h"
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/run/program.h"
#include "gradus/backend/cpu/step_thunks.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/graph/activity_scope.h"
#include "gradus/compiler/verify_steps.h"

namespace gradus {

std::shared_ptr<const CpuProgram> cpu_backend::compile(Graph given, const CompileOptions& asked,
                                                       const Processor* target) {
  const HostFloats floats;
  const TargetScope scope(target);
  const CompileActivity activity("compile");
  const bool compiles = asked.tier == Tier::compiled, budgeted = compiles && asked.max_bytes > 0;
  CompileOptions options = asked;
  if (budgeted)  // also in bodies: the memory that a budget leaves is not spent on speed
    for (const char* spends : {"residuals", "rows"}) options.disable.emplace_back(spends);
  const auto enabled = [&](std::string_view name) { return !is_disabled(options.disable, name); };
  run_graph_passes(given, options.disable);
  Plan plan = budgeted && enabled("recompute") ? plan_within_budget(given, options) : Plan();
  if (plan.steps.empty())
    plan.steps =
        compiles ? usual_steps(given, options) : run_step_passes(interpreter_step_passes(), given, options.disable);
  const auto graph = std::make_shared<const Graph>(std::move(given));
  if (!enabled("concurrency")) plan.staging = Staging::in_order;
  plan.sharing =
      enabled("reuse") ? plan_sharing(*graph, plan.steps) : Sharing{std::vector<int>(graph->outputs.size(), -1)};
  if (environment_asks("GRADUS_VERIFY")) verify(*graph, plan.steps, plan.sharing);
  Lowered lowered = lower(graph, plan.steps, options);
  return std::make_shared<CpuProgram>(graph, std::move(plan), std::move(lowered));
}

}  // namespace gradus
