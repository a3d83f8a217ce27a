/// Plans whose temporaries stay within a byte budget.
#pragma once
#include "gradus/backend/cpu/run/program.h"

namespace gradus {

/// The steps of a compiled program without a budget, in order; the graph may get copies of formulas.
std::vector<Step> usual_steps(Graph& graph, const CompileOptions& options);

/// The steps of `graph`, side by side if that fits into options.max_bytes, else in sequence, else with values computed
/// again for late readers, which changes `graph`. ResourceExhausted names the smallest budget that works.
Plan plan_within_budget(Graph& graph, const CompileOptions& options);

/// The memory that a compiled program of `graph` will need without a budget, for options.symbols and as many threads as
/// now: slots, and bytes besides its outputs, estimated from above. No code is made.
struct PlannedUse {
  std::int64_t arena_bytes = 0, slots = 0;
};
PlannedUse planned_use(Graph graph, const CompileOptions& options);
std::int64_t planned_bytes(Graph graph, std::span<const std::int64_t> symbols = {});

}  // namespace gradus
