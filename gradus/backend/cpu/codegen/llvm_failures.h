/// Handlers for LLVM's failures: it ends the process if memory runs out or it finds a fault of its own. There is one
/// set of handlers for a process, so the library installs none. A program that owns its process may.
#pragma once

namespace gradus::cpu_backend {

/// `end` is told why, must not allocate nor throw, and must not return.
void end_of_llvm(void (*end)(const char* reason));

}  // namespace gradus::cpu_backend
