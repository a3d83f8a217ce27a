/// The current call of this thread. Decision 82 has the reasons.
#include "gradus/nn/call_scope.h"
#include <atomic>
#include "gradus/function/trace.h"
#include "gradus/nn/layer.h"

namespace gradus {
namespace {

std::atomic<bool> losses_are_used{false};
CallScope*& innermost_scope() { return CallContext::here().layers; }

}  // namespace

CallScope::CallScope(const Layer& entry) : CallScope(Kind::call, &entry) {
  outermost_.emplace(entry);
  if (Trace* trace = Trace::current()) [[unlikely]]
    entry.watch(*trace);
}

/// A call within another one adds no scope of its own; a trial hides the one around it.
CallScope::CallScope(Kind kind, const Layer* entry) : outer_(innermost_scope()), kind_(kind) {
  if (entry && nesting_.is_too_deep()) [[unlikely]]
    nesting_.check(entry->kind());
  if (kind == Kind::trial || !innermost_scope()) innermost_scope() = this;
  if (kind == Kind::call && !outer_ && CallLosses::are_used()) entry->forget_call_losses();
}

CallScope::~CallScope() { innermost_scope() = outer_; }

bool CallScope::is_call() { return innermost_scope() && innermost_scope()->kind_ == Kind::call; }

void CallLosses::add(Tensor loss) {
  losses_are_used = true;
  const std::lock_guard lock(mutex_);
  losses_.push_back(std::move(loss));
}
void CallLosses::forget() {
  Tensors forgotten;  // freed after the lock
  const std::lock_guard lock(mutex_);
  forgotten.swap(losses_);
}
Tensors CallLosses::all() const {
  const std::lock_guard lock(mutex_);
  return losses_;
}
bool CallLosses::are_used() { return losses_are_used; }

}  // namespace gradus
