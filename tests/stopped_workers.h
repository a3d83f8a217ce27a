/// Workers of the pool that do not come, as if others had taken their cores for good: each sits in the handler of a
/// signal until it is let go. (ThreadSanitizer puts signals off.)
#pragma once
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>
#include "gradus/base/thread_pool.h"

namespace gradus {

class StoppedWorkers {
 public:
  explicit StoppedWorkers(const std::vector<int>& workers) {
    struct sigaction action = {};
    action.sa_handler = sit;
    sigaction(SIGUSR2, &action, &before_);
    ThreadPool& pool = ThreadPool::global();
    std::vector<pid_t> ids(static_cast<std::size_t>(pool.threads()));
    pool.run(pool.threads(), [&](int worker, int) {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGUSR2);
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      ids[static_cast<std::size_t>(worker)] = static_cast<pid_t>(syscall(SYS_gettid));
    });
    let_go = false;
    for (const int worker : workers) syscall(SYS_tgkill, getpid(), ids[static_cast<std::size_t>(worker)], SIGUSR2);
    while (sitting < static_cast<int>(workers.size())) std::this_thread::yield();
  }
  ~StoppedWorkers() {
    let_go = true;
    while (sitting > 0) std::this_thread::yield();
    sigaction(SIGUSR2, &before_, nullptr);
  }
  StoppedWorkers(const StoppedWorkers&) = delete;

 private:
  static void sit(int) {
    const int error = errno;
    ++sitting;
    while (!let_go) usleep(100);
    --sitting;
    errno = error;
  }
  static inline std::atomic<int> sitting = 0;
  static inline std::atomic<bool> let_go = false;
  struct sigaction before_ = {};
};

}  // namespace gradus
