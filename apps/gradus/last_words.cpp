/// Nothing here allocates: there may be no memory.
#include "apps/gradus/last_words.h"
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include "apps/gradus/commands.h"
#include "gradus/backend/cpu/codegen/llvm_failures.h"

namespace gradus::command {
namespace {

void say(const char* words) {
  for (std::size_t left = std::strlen(words); left > 0;) {
    const ssize_t written = ::write(STDERR_FILENO, words, left);
    if (written <= 0) return;
    words += written;
    left -= static_cast<std::size_t>(written);
  }
}

[[noreturn]] void end(const char* what, const char* why) {
  static std::atomic_flag is_ending;
  if (is_ending.test_and_set()) {  // several threads run out of memory at once: the first one speaks and ends all
    ::sleep(1);
    ::_exit(failed);
  }
  say("gradus: ");
  say(what);
  say(why);
  say("\n");
  ::_exit(failed);
}

constexpr const char* remedy = "; allow the process more memory (ulimit -v, or that of the machine or container)";

[[noreturn]] void on_terminate() {
  if (const std::exception_ptr problem = std::current_exception()) try {
      std::rethrow_exception(problem);
    } catch (const std::bad_alloc&) {
      end("out of memory where it cannot be caught", remedy);
    } catch (const std::exception& error) { end("an error where it cannot be caught: ", error.what()); } catch (...) {
    }
  end("ended by a fault of its own", "");
}

/// For LLVM: it has run out of memory, or into a fault; its message tells which.
[[noreturn]] void on_llvm_failure(const char* reason) {
  if (std::strstr(reason, "llocat") != nullptr) end("out of memory while kernels were compiled", remedy);
  end("the compiler of kernels failed: ", reason);
}

/// An exception may not pass through LLVM, which would free its objects twice.
void on_lack_of_memory() {
  if (cpu_backend::runs_llvm()) end("out of memory while kernels were compiled", remedy);
  throw std::bad_alloc();
}

/// Where the stack of a thread ends that was interrupted.
std::uintptr_t end_of_stack(const ucontext_t& state) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(state.uc_mcontext.gregs[REG_RSP]);
#else
  return state.uc_mcontext.sp;
#endif
}

/// A stack that needs more memory than there is faults just below where it ends. All else is a fault of the program:
/// it ends as it would without a handler.
void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const std::uintptr_t stack = end_of_stack(*static_cast<const ucontext_t*>(context));
  constexpr std::uintptr_t below = 1 << 16, above = 1 << 12;
  if (address + below > stack && address < stack + above) end("there is no memory for the stack", remedy);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void install_last_words() {
  std::set_terminate(on_terminate);
  std::set_new_handler(on_lack_of_memory);
  cpu_backend::end_of_llvm(on_llvm_failure);
  static std::array<std::byte, 1 << 16> other_stack;  // the handler's: there is none left of the thread's
  stack_t stack{};
  stack.ss_sp = other_stack.data();
  stack.ss_size = other_stack.size();
  ::sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace gradus::command
