/// The stack of contexts of this thread.
#include "gradus/graph/context.h"

namespace gradus {
namespace {
int& untraced_depth() {
  thread_local int depth = 0;
  return depth;
}
std::atomic<std::uint32_t> next_id{1};
}  // namespace

constinit thread_local Context* Context::innermost_ = nullptr;

Context::Context() : Context(new_id()) {}
Context::Context(std::uint32_t id) : parent_(innermost_), id_(id) { innermost_ = this; }
Context::~Context() { innermost_ = parent_; }
std::uint32_t Context::new_id() { return next_id.fetch_add(1, std::memory_order_relaxed); }

Tensor Context::read(VariableCell& cell) { return parent_ ? parent_->read(cell) : Tensor(); }
void Context::assign(VariableCell& cell, const Tensor& value) {
  internal_check(parent_ != nullptr, "a context that takes no assignment");
  parent_->assign(cell, value);
}
Tensor Context::random_key(const Tensor& key) { return parent_ ? parent_->random_key(key) : key; }

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
Tensor Context::literal(const Tensor& made) { return parent_ ? parent_->literal(made) : made; }

Untraced::Untraced() : suspended_(std::exchange(Context::innermost_, nullptr)) { ++untraced_depth(); }
Untraced::~Untraced() {
  Context::innermost_ = suspended_;
  --untraced_depth();
}
bool Untraced::is_active() { return untraced_depth() > 0; }

Context* Context::find(std::uint32_t id) {
  Context* context = innermost_;
  while (context && context->id_ != id) context = context->parent_;
  return context;
}

}  // namespace gradus
