/// The stack of contexts of this thread.
#include "gradus/graph/context.h"

namespace gradus {
namespace {
std::atomic<std::uint32_t> next_id{1};
}

Context::Context() : Context(new_id()) {}
Context::Context(std::uint32_t id) : id_(id) {}
std::uint32_t Context::new_id() { return next_id.fetch_add(1, std::memory_order_relaxed); }

Tensor Context::read(VariableCell& cell) { return parent() ? parent()->read(cell) : Tensor(); }
void Context::assign(VariableCell& cell, const Tensor& value) {
  internal_check(parent() != nullptr, "a context that takes no assignment");
  parent()->assign(cell, value);
}
Tensor Context::random_key(const Tensor& key) { return parent() ? parent()->random_key(key) : key; }
void Context::require_not_negative(std::int64_t dimension, const std::string& otherwise) {
  require(parent() != nullptr, otherwise, ": its size is not known");
  parent()->require_not_negative(dimension, otherwise);
}

bool Context::decide(const Tensor& predicate) {
  throw InvalidArgument(
      text("if (tensor): ", predicate.spec(),
           " is symbolic, so a C++ branch on it cannot be taken while this is traced; use cond(condition, if_true, "
           "if_false) or where(condition, a, b), or decide outside"));
}
Ref<Node>* Context::place_of(const AnyOp&, In) {
  count_application();
  return nullptr;
}
Tensor Context::literal(const Tensor& made) { return parent() ? parent()->literal(made) : made; }

Context* Context::find(std::uint32_t id) {
  Context* context = current();
  while (context && context->id_ != id) context = context->parent();
  return context;
}

}  // namespace gradus
