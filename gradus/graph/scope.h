/// Scopes: the layer or profile scope in which nodes are recorded, so that errors, reports and explanations can name
/// it. A scope is a number; its path is text such as "sequential/dense_1".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include "gradus/graph/call_context.h"

namespace gradus {

/// Ops recorded in its lifetime, on this thread, belong to "<outer>/<name>".
class NameScope {
 public:
  [[nodiscard]] explicit NameScope(std::string_view name);
  /// Ops belong to `scope`.
  [[nodiscard]] explicit NameScope(std::uint32_t scope) : scope_(scope) {}

 private:
  const detail::FieldScope<&detail::CallContext::scope> scope_;
};

/// A bit of a scope's number: this op is a gradient. The path is that of the layer whose op it is the gradient of.
inline constexpr std::uint32_t gradient_scope = std::uint32_t{1} << 31;

/// The scope of this thread; 0 is none.
inline std::uint32_t current_scope() { return detail::CallContext::here().scope; }
/// The path of a scope, such as "sequential/dense_1".
std::string scope_path(std::uint32_t scope);

}  // namespace gradus
