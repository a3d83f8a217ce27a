/// LivedDeadline: a deadline that counts the time alone that this process has lived. A machine that is suspended, a job
/// that is paused and a debugger stop the peers, too, whose answers nobody can expect meanwhile.
#pragma once
#include <algorithm>
#include <chrono>
#include <utility>

namespace gradus {

/// Notices that its process has slept: whoever waits comes by at least every `slice`, and a gap of more than two of
/// them was not lived.
class LivedTime {
 public:
  using Clock = std::chrono::steady_clock;
  explicit LivedTime(Clock::duration slice = std::chrono::milliseconds(100), Clock::time_point now = Clock::now())
      : slice_(slice), seen_(now) {}

  Clock::duration slice() const { return slice_; }
  /// How much of the time since the last call was not lived.
  Clock::duration missed(Clock::time_point now = Clock::now()) {
    const Clock::duration gap = now - std::exchange(seen_, now);
    return gap > 2 * slice_ ? gap - slice_ : Clock::duration::zero();
  }

 private:
  Clock::duration slice_;
  Clock::time_point seen_;
};

/// Of whoever waits until it has passed: it waits until next(), looks, and asks again.
class LivedDeadline {
 public:
  using Clock = LivedTime::Clock;
  explicit LivedDeadline(Clock::time_point deadline, Clock::time_point now = Clock::now())
      : deadline_(deadline), time_(std::chrono::milliseconds(100), now) {}

  /// Until when to wait at most before has_passed() is called again.
  Clock::time_point next(Clock::time_point now = Clock::now()) const {
    return std::min(deadline_, now + time_.slice());
  }
  bool has_passed(Clock::time_point now = Clock::now()) {
    deadline_ += time_.missed(now);
    return now >= deadline_;
  }

 private:
  Clock::time_point deadline_;
  LivedTime time_;
};

}  // namespace gradus
