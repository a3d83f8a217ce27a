/// The whole compiler, readable from top to bottom.
#include <algorithm>
#include <chrono>
#include "gradus/backend/interpreter/lower.h"
#include "gradus/backend/library.h"
#include "gradus/backend/program.h"

namespace gradus {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Lowered lower(const std::shared_ptr<const Graph>& graph, std::span<const Step> steps) {
  Lowered lowered{.slots = graph->size()};
  std::vector<std::vector<Thunk>> loops = interpreter::lower_loops(graph, steps);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].kind == Step::Kind::library) loops[s].push_back(lower_library(graph, steps[s]));
    for (Thunk& thunk : loops[s]) {
      thunk.step = static_cast<int>(s);
      lowered.thunks.push_back(std::move(thunk));
    }
  }
  return lowered;
}

}  // namespace

std::shared_ptr<const Program> compile(Graph given, const CompileOptions& options) {
  const double start = now();
  const auto enabled = [&](std::string_view pass) {
    return std::ranges::find(options.disable, pass) == options.disable.end();
  };
  run_graph_passes(given, options.disable);
  const auto graph = std::make_shared<const Graph>(std::move(given));
  std::vector<Step> steps = order_steps(*graph, single_steps(*graph));
  Sharing sharing =
      enabled("reuse") ? plan_sharing(*graph, steps) : Sharing{std::vector<int>(graph->outputs.size(), -1)};
  Lowered lowered = lower(graph, steps);
  return std::make_shared<Program>(graph, std::move(steps), std::move(sharing), std::move(lowered), now() - start);
}

}  // namespace gradus
