/// Workers of the pool that do not come, as if others had taken their cores for good: each sits in the handler of a
/// signal until it is let go, or for a given time. (ThreadSanitizer puts signals off.)
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
  explicit StoppedWorkers(const std::vector<int>& workers, std::chrono::microseconds longest = std::chrono::hours(24)) {
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
    came = 0, longest_ = longest;
    for (const int worker : workers) syscall(SYS_tgkill, getpid(), ids[static_cast<std::size_t>(worker)], SIGUSR2);
    while (came < static_cast<int>(workers.size())) std::this_thread::yield();
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
    ++sitting, ++came;
    constexpr std::chrono::microseconds pause{100};
    for (std::chrono::microseconds sat{0}; !let_go && sat < longest_; sat += pause) usleep(pause.count());
    --sitting;
    errno = error;
  }
  static inline std::atomic<int> sitting = 0, came = 0;
  static inline std::atomic<bool> let_go = false;
  static inline std::chrono::microseconds longest_{0};
  struct sigaction before_ = {};
};

}  // namespace gradus
