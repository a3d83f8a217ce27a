/// Waiting for another thread by polling: first at full speed, after a while with sleeps. It does not yield its core:
/// beside another busy process it would get that back only after a whole time slice.
#pragma once
#include <atomic>
#include <chrono>
#include <thread>
#include "gradus/base/cpu_pause.h"

namespace gradus {

/// Set while the pool has more threads than cores: then waiting threads should sleep soon.
[[gnu::visibility("default")]] inline constinit std::atomic<bool> crowded = false;

class Spin {
 public:
  /// `patience`: time for which it keeps the core.
  explicit Spin(std::chrono::microseconds patience = std::chrono::microseconds(50)) : patience_(patience) {}
  /// One short pause.
  void pause() {
    cpu_pause();
    if (++pauses_ % pauses_per_look == 0) [[unlikely]]
      look();
  }
  /// Time since it began to wait, as of the last look at the clock.
  std::chrono::nanoseconds waited() const { return waited_; }

 private:
  static constexpr unsigned pauses_per_look = 64;  // 1 to 3 us, by processor
  using Clock = std::chrono::steady_clock;

  void look() {
    const auto now = Clock::now();
    if (pauses_ == pauses_per_look) start_ = now;
    waited_ = now - start_;
    if (waited_ >= patience_ || crowded.load(std::memory_order_relaxed))
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  const std::chrono::microseconds patience_;
  unsigned pauses_ = 0;
  Clock::time_point start_;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace gradus
