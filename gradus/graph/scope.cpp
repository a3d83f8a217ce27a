/// The table of scope paths. A scope is entered once per layer and outer scope, so the table stays small.
#include "gradus/graph/scope.h"
#include <deque>
#include <map>
#include <mutex>
#include <utility>

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
[[gnu::tls_model("initial-exec")]] constinit thread_local std::uint32_t here = 0;

}  // namespace

NameScope::NameScope(std::string_view name) : outer_(here) {
  Paths& table = paths();
  std::lock_guard lock(table.guard);
  std::string path = table.all[outer_];
  if (!path.empty()) path += '/';
  path += name;
  const auto [it, fresh] = table.numbers.try_emplace(path, static_cast<std::uint32_t>(table.all.size()));
  if (fresh) table.all.push_back(path);
  here = it->second;
}

NameScope::NameScope(std::uint32_t scope) : outer_(std::exchange(here, scope)) {}

NameScope::~NameScope() { here = outer_; }

std::uint32_t current_scope() { return here; }

std::string scope_path(std::uint32_t scope) {
  std::lock_guard lock(paths().guard);
  return paths().all[scope];
}

}  // namespace gradus
