/// The runner of the graph passes.
#include "gradus/compiler/passes.h"
#include "gradus/base/clock.h"
#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace gradus {
namespace {

struct Pass {
  std::string_view name;
  void (*run)(Graph&);
};
constexpr Pass graph_passes[] = {{"inline", inline_calls},
                                 {"hoist", hoist},
                                 {"fold", fold_constants},
                                 {"simplify", simplify},
                                 {"eliminate", eliminate_common_subexpressions}};
constexpr std::string_view names[] = {"hoist",     "fold", "simplify", "eliminate", "attention",
                                      "recompute", "fuse", "rederive", "reuse",     "concurrency"};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::string_view(value) != "0";
}

}  // namespace

std::span<const std::string_view> pass_names() { return names; }

std::vector<PassTime> run_graph_passes(Graph& graph, std::span<const std::string> disable) {
  for (const std::string& name : disable)
    require(std::ranges::find(names, name) != std::end(names), "compile: there is no pass `", name,
            "`; the passes are hoist, fold, simplify, eliminate, attention, recompute, fuse, rederive, reuse, "
            "concurrency");
  const bool verifies = is_set("GRADUS_VERIFY"), prints = is_set("GRADUS_PRINT_PASSES");
  std::vector<PassTime> times;
  if (std::ranges::find(disable, "attention") != disable.end()) compose_attention(graph);
  for (const Pass& pass : graph_passes) {
    if (std::ranges::find(disable, pass.name) != disable.end()) continue;
    const int before = graph.size();
    const double start = steady_seconds();
    pass.run(graph);
    times.push_back({std::string(pass.name), steady_seconds() - start, before, graph.size()});
    if (verifies) verify(graph);
    if (prints) std::cerr << "after " << pass.name << ":\n" << to_text(graph);
  }
  return times;
}

}  // namespace gradus
