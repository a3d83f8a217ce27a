#include "gradus/backend/cpu/run/team_choice.h"
#include <algorithm>

namespace gradus {

void TeamChoice::begin() {
  alone_.store(false, std::memory_order_relaxed);
  missed_.store(0, std::memory_order_relaxed);
  runs_.store(0, std::memory_order_relaxed);
}

void TeamChoice::decide(bool alone) {
  alone_.store(alone, std::memory_order_relaxed);
  runs_.store(measured_runs, std::memory_order_relaxed);
}

void TeamChoice::note(bool by_team, double nanoseconds) {
  const int runs = runs_.load(std::memory_order_relaxed);
  if (runs >= measured_runs) return;
  const bool wants_team = runs < runs_of_way;
  if (by_team != wants_team) {
    const int missed = missed_.load(std::memory_order_relaxed) + 1;
    missed_.store(missed, std::memory_order_relaxed);
    if (missed > most_missed) decide(true);
    return;
  }
  Times& times = by_team ? by_team_ : by_caller_;
  times[static_cast<std::size_t>(runs % runs_of_way)].store(static_cast<float>(nanoseconds), std::memory_order_relaxed);
  if (runs + 1 == measured_runs) {
    constexpr float clearly = 0.97F;
    return decide(lower_quartile(by_caller_) < clearly * lower_quartile(by_team_));
  }
  runs_.store(runs + 1, std::memory_order_relaxed);
  if (runs + 1 == runs_of_way) alone_.store(true, std::memory_order_relaxed);
}

/// Leaves out the first few runs, whose memory lies where the other way has left it. The lower quartile, since
/// disturbances only make runs longer.
float TeamChoice::lower_quartile(const Times& times) {
  std::array<float, samples> sorted;
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = times[i + settling].load(std::memory_order_relaxed);
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 4];
}

}  // namespace gradus
