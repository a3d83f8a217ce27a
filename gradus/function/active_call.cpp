/// Errors of recursion name the chain of calls.
#include "gradus/function/active_call.h"
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"

namespace gradus {

ActiveCall::ActiveCall(const std::string& title, const void* function) : title_(title), function_(function) {
  if (nesting_.is_too_deep()) [[unlikely]]
    fail();
}

void ActiveCall::fail() const {
  std::string way = title_;
  const ActiveCall* call = scope_.before();
  for (; call && call->function_ != function_; call = call->scope_.before()) way = call->title_ + " -> " + way;
  const std::string how = call ? text(" calls itself without an end: ", title_, " -> ", way)
                               : std::string(" is called so deep within calls of others");
  throw InvalidArgument(
      text(title_, how, "; it was called ", nesting_.depth(),
           " calls deep. While a function is traced all that it calls is traced, too, and the value of "
           "a tensor ends nothing: make the recursion a while_loop or a scan, or let an integer "
           "argument count it down"));
}

}  // namespace gradus
