/// LLVM ends the process where it has no memory, or finds a fault of its own. Its handlers are the process's, so that
/// the library installs none: a program that owns its process may.
#pragma once

namespace gradus::cpu_backend {

/// `end` is told why, must not allocate nor throw, and must not return.
void end_of_llvm(void (*end)(const char* reason));

}  // namespace gradus::cpu_backend
