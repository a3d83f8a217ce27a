/// Signals are for the threads of the program: what the library starts gets none.
#pragma once
#include <pthread.h>
#include <signal.h>

namespace gradus {

/// A thread that is started in its lifetime, by this thread, blocks all signals.
class NoSignals {
 public:
  [[nodiscard]] NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace gradus
