/// TeamChoice: chooses between the team and the caller alone for a small program, by measured times. The cost model
/// knows the computation, but not which cache lines go from core to core between kernels, nor how far apart the cores
/// are. Two threads take 0.6 of the time of one for a step of 784-128-10 with 16 rows, but 1.9 times as long for
/// 128-128-128-1 with 32 rows. So a program is run both ways, and again after many runs.
#pragma once
#include <array>
#include <atomic>

namespace gradus {

/// Any number of threads may ask and report at once; a race loses a sample.
class TeamChoice {
 public:
  /// The choice for a team of all these threads.
  explicit TeamChoice(int threads) : threads_(threads) {}
  int threads() const { return threads_; }

  /// How to run next.
  bool prefers_alone() const { return alone_.load(std::memory_order_relaxed); }
  /// True if note() wants to know how long that takes.
  bool is_measuring() const { return runs_.load(std::memory_order_relaxed) < measured_runs; }
  /// It ran that way.
  void note(bool by_team, double nanoseconds);
  void note() {
    const int runs = runs_.load(std::memory_order_relaxed) + 1;
    runs_.store(runs, std::memory_order_relaxed);
    if (runs >= runs_until_again) [[unlikely]]
      begin();
  }

 private:
  static constexpr int settling = 4, samples = 12, runs_of_way = settling + samples, measured_runs = 2 * runs_of_way;
  static constexpr int runs_until_again = 1 << 14, most_missed = 100;
  using Times = std::array<std::atomic<float>, runs_of_way>;

  void begin();
  void decide(bool alone);
  static float lower_quartile(const Times& times);

  const int threads_;
  std::atomic<bool> alone_{false};
  std::atomic<int> runs_{0};
  std::atomic<int> missed_{0};  // runs that were to be by the team, which did not come
  Times by_team_{}, by_caller_{};
};

}  // namespace gradus
