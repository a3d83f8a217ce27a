/// The stack of contexts of this thread.
#include "gradus/graph/context.h"

namespace gradus {
namespace {
Context*& innermost() {
  thread_local Context* context = nullptr;
  return context;
}
int& untraced_depth() {
  thread_local int depth = 0;
  return depth;
}
std::atomic<std::uint32_t> next_id{1};
}  // namespace

Context::Context() : parent_(innermost()), id_(next_id.fetch_add(1, std::memory_order_relaxed)) { innermost() = this; }
Context::~Context() { innermost() = parent_; }
Context* Context::current() { return innermost(); }

Untraced::Untraced() : suspended_(std::exchange(innermost(), nullptr)) { ++untraced_depth(); }
Untraced::~Untraced() {
  innermost() = suspended_;
  --untraced_depth();
}
bool Untraced::is_active() { return untraced_depth() > 0; }

bool Context::is_active(std::uint32_t id) {
  for (const Context* context = innermost(); context; context = context->parent_)
    if (context->id_ == id) return true;
  return id == 0;
}

}  // namespace gradus
