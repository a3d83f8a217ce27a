/// Finds started processes that are stopped, and for how long while the rest of the job went on. A pause of the whole
/// job, or of the launcher, does not count.
#pragma once
#include <sys/types.h>
#include <chrono>
#include <span>
#include <vector>
#include "apps/gradus/rank_fates.h"
#include "gradus/base/lived_time.h"

namespace gradus::command {

/// True if a signal has stopped the process (state T of /proc/N/stat). A process under a debugger does not count, since
/// the debugger continues it.
bool is_stopped(pid_t process);

class StoppedRanks {
 public:
  using Clock = LivedTime::Clock;
  explicit StoppedRanks(Clock::time_point now = Clock::now())
      : time_(std::chrono::milliseconds(500), now), seen_(now) {}

  /// Processes that have been stopped for longer than `timeout`, each reported once. Call it at least twice a second,
  /// with is_stopped set for each living process.
  std::vector<int> overdue(std::span<const RankFate> fates, std::chrono::milliseconds timeout,
                           Clock::time_point now = Clock::now());

 private:
  LivedTime time_;
  Clock::time_point seen_;
  std::vector<Clock::duration> stopped_;  // by process
};

}  // namespace gradus::command
