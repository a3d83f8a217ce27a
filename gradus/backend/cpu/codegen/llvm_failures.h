/// Handlers for LLVM's failures: it ends the process if memory runs out or it finds a fault of its own. There is one
/// set of handlers for a process, so the library installs none. A program that owns its process may.
#pragma once

namespace gradus::cpu_backend {

/// `end` receives the reason, must not allocate nor throw, and must not return.
void end_of_llvm(void (*end)(const char* reason));

/// Marks this thread as running LLVM, through whose frames no exception may pass. If an allocation fails there, a
/// program that owns its process has to end the process, by a handler of `new`.
class LlvmScope {
 public:
  [[nodiscard]] LlvmScope();
  ~LlvmScope();
  LlvmScope(const LlvmScope&) = delete;
};
/// True within such a scope of this thread.
bool runs_llvm();

}  // namespace gradus::cpu_backend
