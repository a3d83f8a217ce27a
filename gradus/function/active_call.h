/// ActiveCall: a call of a function on this thread that is not over. Calls lie within one another while a function
/// traces what calls another; a function that calls itself without an end is an InvalidArgument.
#pragma once
#include <string>
#include "gradus/base/nesting.h"

namespace gradus {

class ActiveCall {
 public:
  /// `title`, which outlives the call, is how errors call the function that `function` tells from others.
  ActiveCall(const std::string& title, const void* function);
  ~ActiveCall();
  ActiveCall(const ActiveCall&) = delete;

 private:
  [[noreturn]] void fail() const;
  const Nesting nesting_;
  const std::string& title_;
  const void* const function_;
  ActiveCall* const outer_;
};

}  // namespace gradus
