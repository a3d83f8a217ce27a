/// The runner of the graph passes.
#include "gradus/compiler/passes.h"
#include <algorithm>
#include <cstdlib>
#include "gradus/base/notice.h"

namespace gradus {
namespace {

struct Pass {
  std::string_view name;
  void (*run)(Graph&);
  std::string_view instead_of = {};  // it runs if this is disabled
};
constexpr Pass graph_passes[] = {{"inline", inline_calls},
                                 {"hoist", hoist},
                                 {"compose", compose_attention, "attention"},  // also what came out of a loop
                                 {"fold", fold_constants},
                                 {"simplify", simplify},
                                 {"eliminate", eliminate_common_subexpressions}};
constexpr std::string_view names[] = {"hoist", "fold",     "simplify", "eliminate", "attention", "recompute",
                                      "fuse",  "rederive", "remake",   "residuals", "reuse",     "concurrency",
                                      "share", "turns",    "strips",   "depthwise", "winograd",  "epilogues",
                                      "rows",  "balance",  "lookups"};

void check_name(const std::string& name) {
  if (std::ranges::find(names, name) != std::end(names)) return;
  std::string known;
  for (std::string_view each : names) known += text(known.empty() ? "" : ", ", each);
  throw InvalidArgument(text("compile: there is no pass `", name, "`; the passes are ", known));
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::string_view(value) != "0";
}

}  // namespace

std::span<const std::string_view> pass_names() { return names; }

bool is_disabled(std::span<const std::string> disable, std::string_view name) {
  return std::ranges::find(disable, name) != disable.end();
}

void run_graph_passes(Graph& graph, std::span<const std::string> disable) {
  for (const std::string& name : disable) check_name(name);
  const bool verifies = is_set("GRADUS_VERIFY"), prints = is_set("GRADUS_PRINT_PASSES");
  for (const Pass& pass : graph_passes) {
    if (is_disabled(disable, pass.name)) continue;
    if (!pass.instead_of.empty() && !is_disabled(disable, pass.instead_of)) continue;
    pass.run(graph);
    if (verifies) verify(graph);
    if (prints) notice(text("after ", pass.name, ":\n", to_text(graph)));
  }
}

}  // namespace gradus
