/// Signals are for the threads of the program: threads that the library starts get none.
#pragma once
#include <pthread.h>
#include <signal.h>

namespace gradus {

/// A thread that this thread starts while it lives blocks all signals except those of its own faults, which a handler
/// of the program may want to see.
class NoSignals {
 public:
  [[nodiscard]] NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace gradus
