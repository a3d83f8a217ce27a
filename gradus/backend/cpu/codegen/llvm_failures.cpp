/// One handler for both of LLVM's ends.
#include "gradus/backend/cpu/codegen/llvm_failures.h"
#include <llvm/Support/ErrorHandling.h>

namespace gradus::cpu_backend {
namespace {

void (*end_of_process)(const char* reason) = nullptr;
thread_local int scopes = 0;

void on_failure(void*, const char* reason, bool) { end_of_process(reason); }

}  // namespace

void end_of_llvm(void (*end)(const char* reason)) {
  end_of_process = end;
  llvm::remove_bad_alloc_error_handler();
  llvm::remove_fatal_error_handler();
  llvm::install_bad_alloc_error_handler(on_failure);
  llvm::install_fatal_error_handler(on_failure);
}

LlvmScope::LlvmScope() { ++scopes; }
LlvmScope::~LlvmScope() { --scopes; }

bool runs_llvm() { return scopes > 0; }

}  // namespace gradus::cpu_backend
