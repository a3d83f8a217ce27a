/// The end of a thread's stack, which the system is asked for once. Decision 217 has the reasons.
#include "gradus/base/nesting.h"
#include <pthread.h>
#include <cstddef>
#include <cstdint>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

struct Stack {
  std::uintptr_t low = 0, high = 0;  // equal: not known
  Stack() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void* begin = nullptr;
    std::size_t bytes = 0;
    if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0) {
      low = reinterpret_cast<std::uintptr_t>(begin);
      high = low + bytes;
    }
    pthread_attr_destroy(&attributes);
  }
};

}  // namespace

int& Nesting::current() {
  static thread_local int depth = 0;
  return depth;
}

void Nesting::fail(std::string_view what) const {
  throw InvalidArgument(
      text(what, ": its function lies ", depth_,
           " calls deep within others: C++ that calls itself in it never ends, since it is traced "
           "whatever the value of a tensor turns out to be; make the recursion a while_loop, or let a "
           "number that is known count it down"));
}

bool Nesting::is_stack_short() {
  static thread_local const Stack stack;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const bool is_ours = here >= stack.low && here < stack.high;  // not one that the program made itself
  return is_ours && here - stack.low < (stack.high - stack.low) / 4;
}

}  // namespace gradus
