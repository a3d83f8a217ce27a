/// Which started processes are stopped, and for how long while the rest of the job went on: a pause of the whole job is
/// nobody's fault, and neither is one of the launcher.
#pragma once
#include <sys/types.h>
#include <chrono>
#include <span>
#include <vector>
#include "apps/gradus/rank_fates.h"
#include "gradus/base/lived_time.h"

namespace gradus::command {

/// True if the kernel has stopped it for a signal (state T of /proc/N/stat); not under a debugger, which goes on by
/// itself.
bool is_stopped(pid_t process);

class StoppedRanks {
 public:
  using Clock = LivedTime::Clock;
  explicit StoppedRanks(Clock::time_point now = Clock::now())
      : time_(std::chrono::milliseconds(500), now), seen_(now) {}

  /// To be called at least twice a second, with is_stopped of each that lives. Those that have been stopped for longer
  /// than `timeout`, each once.
  std::vector<int> overdue(std::span<const RankFate> fates, std::chrono::milliseconds timeout,
                           Clock::time_point now = Clock::now());

 private:
  LivedTime time_;
  Clock::time_point seen_;
  std::vector<Clock::duration> stopped_;  // by process
};

}  // namespace gradus::command
