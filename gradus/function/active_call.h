/// ActiveCall: a call of a function on this thread that is not over. Calls lie within one another while a function
/// traces what calls another; a function that calls itself without an end is an InvalidArgument.
#pragma once
#include <string>
#include "gradus/base/nesting.h"
#include "gradus/graph/call_context.h"

namespace gradus {

namespace detail::inline rooms {

class ActiveCall {
 public:
  /// `title`, which outlives the call, is how errors call the function that `function` tells from others.
  ActiveCall(const std::string& title, const void* function);

 private:
  [[noreturn]] void fail() const;
  const Nesting nesting_;
  const std::string& title_;
  const void* const function_;
  const FieldScope<&CallContext::active> scope_{this};
};

}  // namespace detail::inline rooms

}  // namespace gradus
