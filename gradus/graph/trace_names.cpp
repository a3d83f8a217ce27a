#include "gradus/graph/trace_names.h"
#include <algorithm>
#include <array>
#include <mutex>
#include "gradus/base/error.h"
#include "gradus/graph/scope.h"

namespace gradus {
namespace {

struct TraceNames {
  std::mutex guard;
  std::array<std::pair<std::uint32_t, std::string>, 256> latest;
  std::size_t next = 0;
};
TraceNames& names_of_traces() {
  static auto* only = new TraceNames;
  return *only;
}

std::string name_of_trace(std::uint32_t id) {
  TraceNames& names = names_of_traces();
  const std::lock_guard lock(names.guard);
  for (const auto& [known, name] : names.latest)
    if (known == id) return name;
  return "a function";
}

}  // namespace

void name_trace(std::uint32_t id, std::string_view name) {
  TraceNames& names = names_of_traces();
  const std::lock_guard lock(names.guard);
  const auto known = std::ranges::find(names.latest, id, &std::pair<std::uint32_t, std::string>::first);
  auto& named = known != names.latest.end() ? *known : names.latest[names.next++ % names.latest.size()];
  named = {id, std::string(name)};
}

std::string origin_of(const detail::Node& node) {
  const std::string layer = scope_path(node.scope);
  return text(", is symbolic: it was made while ", name_of_trace(node.trace), " was traced",
              layer.empty() ? "," : ", in " + layer + ",", " and that call is over");
}

}  // namespace gradus
