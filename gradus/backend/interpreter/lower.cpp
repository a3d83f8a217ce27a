/// Which thunk a step becomes.
#include "gradus/backend/interpreter/lower.h"

namespace gradus::interpreter {
namespace {

using Bind = BoundThunk (*)(const Graph&, int, std::span<const std::int64_t>);
struct Way {
  Bind bind;
  KernelFunction run;
};

Way way_of(const Value& v) {
  if (!v.op.is_reduction()) return {bind_elementwise, run_elementwise};
  if (v.op.axis() == -1) return {bind_row_reduction, run_row_reduction};
  return {bind_column_reduction, run_column_reduction};
}

}  // namespace

std::vector<std::vector<Thunk>> lower_loops(std::shared_ptr<const Graph> graph, std::span<const Step> steps) {
  std::vector<std::vector<Thunk>> lowered;
  for (const Step& step : steps) {
    std::vector<Thunk>& thunks = lowered.emplace_back();
    if (step.kind != Step::Kind::loops) continue;
    internal_check(step.members.size() == 1, "the interpreter computes one value a step");
    const int value = step.members[0];
    const Way way = way_of((*graph)[value]);
    Thunk thunk{.run = way.run};
    thunk.bind = [graph, value, way](std::span<const std::int64_t> symbols) {
      return way.bind(*graph, value, symbols);
    };
    thunks.push_back(std::move(thunk));
  }
  return lowered;
}

}  // namespace gradus::interpreter
