/// Scopes: the layer or profile scope in which nodes are recorded, so that errors, reports and explanations can name
/// it. A scope is a number; its path is text such as "sequential/dense_1".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gradus {

/// Ops recorded in its lifetime, on this thread, belong to "<outer>/<name>".
class NameScope {
 public:
  [[nodiscard]] explicit NameScope(std::string_view name);
  /// Ops belong to `scope`.
  [[nodiscard]] explicit NameScope(std::uint32_t scope);
  ~NameScope();
  NameScope(const NameScope&) = delete;

 private:
  std::uint32_t outer_;
};

/// 0 is no scope.
std::uint32_t current_scope();
std::string scope_path(std::uint32_t scope);

}  // namespace gradus
