/// BeginAgain: C++ that is traced has changed state that its program depends on, such as the size of a Variable, and
/// nothing else so far. The call of the function begins again, and traces the C++ as it is then.
#pragma once

namespace gradus {

/// No std::exception: nothing that meets a user's mistakes on its way catches it.
struct BeginAgain {
  /// Throws it. InvalidArgument, with `otherwise`, if no call of a function on this thread could begin again.
  [[noreturn]] static void from_trace(const char* otherwise);
};

}  // namespace gradus
