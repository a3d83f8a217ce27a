/// LivedDeadline: a deadline that counts only the time in which this process ran. A suspended machine, a paused job or
/// a debugger also stops the peers, which cannot answer meanwhile.
#pragma once
#include <algorithm>
#include <chrono>
#include <utility>

namespace gradus {

/// Notices that its process was stopped: a waiting loop calls missed() at least every `slice`, so a gap of more than
/// two slices was not lived.
class LivedTime {
 public:
  using Clock = std::chrono::steady_clock;
  explicit LivedTime(Clock::duration slice = std::chrono::milliseconds(100), Clock::time_point now = Clock::now())
      : slice_(slice), seen_(now) {}

  Clock::duration slice() const { return slice_; }
  /// The part of the time since the last call in which the process did not run.
  Clock::duration missed(Clock::time_point now = Clock::now()) {
    const Clock::duration gap = now - std::exchange(seen_, now);
    return gap > 2 * slice_ ? gap - slice_ : Clock::duration::zero();
  }

 private:
  Clock::duration slice_;
  Clock::time_point seen_;
};

/// For a loop that waits until next(), checks its condition, and asks has_passed() again.
class LivedDeadline {
 public:
  using Clock = LivedTime::Clock;
  explicit LivedDeadline(Clock::time_point deadline, Clock::time_point now = Clock::now())
      : deadline_(deadline), time_(std::chrono::milliseconds(100), now) {}

  /// The latest time to wait until before the next call of has_passed().
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
