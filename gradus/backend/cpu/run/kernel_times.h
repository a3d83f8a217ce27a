/// Measured times of the kernels of a program: a clock around each part of each thunk. They cost nothing unless
/// profiled, since only measured jobs go through run_measured.
#pragma once
#include <atomic>
#include <vector>
#include "gradus/backend/cpu/run/program.h"

namespace gradus {

/// The times of one program, whatever the sizes of its runs: per thunk, and of whole runs.
class KernelTimes {
 public:
  struct Entry {
    std::atomic<std::int64_t> nanoseconds{0};  // of all threads together
    std::atomic<std::int64_t> runs{0};
  };
  explicit KernelTimes(std::size_t thunks) : thunks_(thunks) {}

  Entry& thunk(std::size_t t) { return thunks_[t]; }
  const Entry& thunk(std::size_t t) const { return thunks_[t]; }
  /// Nanoseconds of all of them.
  std::int64_t of_thunks() const;
  Entry& whole() { return whole_; }
  const Entry& whole() const { return whole_; }
  /// True for the second run: earlier measurements are then forgotten, since the first run touches all memory and code
  /// for the first time.
  bool is_first_warm() { return begun_.fetch_add(1, std::memory_order_relaxed) == 1; }
  /// Threads of a run; sizes may take more or fewer.
  void add_team(int threads);
  int most_threads() const { return most_threads_.load(std::memory_order_relaxed); }
  void clear();

 private:
  std::vector<Entry> thunks_;
  Entry whole_;
  std::atomic<std::int64_t> begun_{0};
  std::atomic<int> most_threads_{0};
};

/// Adds the time until it is destroyed; of nothing, nothing.
class TimedRun {
 public:
  explicit TimedRun(KernelTimes::Entry* entry);
  TimedRun(const TimedRun&) = delete;
  ~TimedRun();

 private:
  KernelTimes::Entry* entry_;
  std::int64_t began_ = 0;
};

/// A job that is measured: run_measured takes this as its data.
struct MeasuredJob {
  KernelFunction run = nullptr;
  const void* data = nullptr;
  KernelTimes::Entry* entry = nullptr;
  bool controls = false;  // every member of the team runs it
};
void run_measured(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);

}  // namespace gradus
