/// The table of scope paths. A scope is entered once per layer and outer scope, so the table stays small.
#include "gradus/graph/scope.h"
#include <deque>
#include <map>
#include <mutex>

namespace gradus {
namespace {

struct Paths {
  std::mutex guard;
  std::deque<std::string> all{""};
  std::map<std::string, std::uint32_t, std::less<>> numbers;
};
Paths& paths() {
  static auto* only = new Paths;
  return *only;
}
/// That of `name` within `outer`.
std::uint32_t number_of(std::uint32_t outer, std::string_view name) {
  Paths& table = paths();
  std::lock_guard lock(table.guard);
  const std::uint32_t kind = outer & gradient_scope;
  std::string path = table.all[outer ^ kind];
  if (!path.empty()) path += '/';
  path += name;
  const auto [it, fresh] = table.numbers.try_emplace(path, static_cast<std::uint32_t>(table.all.size()));
  if (fresh) table.all.push_back(path);
  return it->second | kind;
}

}  // namespace

NameScope::NameScope(std::string_view name) : NameScope(number_of(current_scope(), name)) {}

std::string scope_path(std::uint32_t scope) {
  std::lock_guard lock(paths().guard);
  return paths().all[scope & ~gradient_scope];
}

}  // namespace gradus
