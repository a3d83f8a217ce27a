/// A mutex for sections that are short and hardly ever contended.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include "gradus/base/cpu_pause.h"

namespace gradus {

/// Locking and unlocking cost one atomic exchange, half of a std::mutex. A thread that will hold it for long locks by
/// lock_long(): then others sleep. It has to outlive its users.
class ShortLock {
 public:
  void lock() {
    if (busy_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      lock_long();
  }
  void lock_long() {
    queue_.lock();
    for (int looks = 0; busy_.load(std::memory_order_relaxed) || busy_.exchange(true, std::memory_order_acquire);
         ++looks)
      if (looks < looks_before_sleep) cpu_pause();
      else std::this_thread::sleep_for(std::chrono::microseconds(20));  // the holder has lost its core
    holds_queue_ = true;
  }
  void unlock() {
    const bool holds_queue = std::exchange(holds_queue_, false);
    busy_.store(false, std::memory_order_release);
    if (holds_queue) queue_.unlock();
  }

 private:
  static constexpr int looks_before_sleep = 200;
  std::atomic<bool> busy_{false};
  bool holds_queue_ = false;  // for the busy thread; read and written by that thread alone
  std::mutex queue_;          // for threads that found it busy, and for long holders
};

}  // namespace gradus
