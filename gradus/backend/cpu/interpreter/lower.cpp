/// The thunks that a step becomes.
#include "gradus/backend/cpu/interpreter/lower.h"

namespace gradus::interpreter {
namespace {

using BindReduction = BoundThunk (*)(const Graph&, int value, int partials, Symbols);

std::vector<Thunk> lower_value(const std::shared_ptr<const Graph>& graph, int value, Lowered& out) {
  const AnyOp& op = (*graph)[value].op;
  if (!op.is_reduction()) {
    Thunk thunk{.run = run_elementwise};
    thunk.bind = [graph, value](Symbols symbols) { return bind_elementwise(*graph, value, symbols); };
    return {std::move(thunk)};
  }
  const int partials = out.slots++;
  const auto thunk_of = [&](BindReduction bind, KernelFunction run) {
    Thunk thunk{.run = run, .shared_slot = partials};
    thunk.bind = [graph, value, partials, bind](Symbols symbols) { return bind(*graph, value, partials, symbols); };
    return thunk;
  };
  if (op.axis() == -1)
    return {thunk_of(bind_row_reduction, run_row_reduction), thunk_of(bind_row_combination, run_row_combination)};
  return {thunk_of(bind_column_reduction, run_column_reduction),
          thunk_of(bind_column_combination, run_column_combination)};
}

}  // namespace

std::vector<std::vector<Thunk>> lower_loops(std::shared_ptr<const Graph> graph, std::span<const Step> steps,
                                            Lowered& out) {
  std::vector<std::vector<Thunk>> lowered;
  for (const Step& step : steps) {
    std::vector<Thunk>& thunks = lowered.emplace_back();
    const Step loops = step.loops();
    if (loops.members.empty()) continue;
    internal_check(step.members.size() == 1, "the interpreter computes one value a step");
    thunks = lower_value(graph, loops.members[0], out);
  }
  return lowered;
}

}  // namespace gradus::interpreter
