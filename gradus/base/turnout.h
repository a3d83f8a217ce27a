/// The number of threads worth calling for short work. A thread that has lost its core to another process comes back
/// after that process's time slice, milliseconds later, and every thread that meets it waits as long: a step of 20 us
/// then takes less on one thread. So the gains of short jobs and the cost of their waits are added up. After losses
/// fewer threads are called for a while, the longer the more was lost.
#pragma once
#include <atomic>

namespace gradus {

/// Times are nanoseconds. Times of work are those of the cost model for one thread, so no clock is read. Any thread may
/// read and report; a report that is lost when two report at once does not matter.
class Turnout {
 public:
  explicit Turnout(int all) { reset(all); }
  /// Sets the number of threads.
  void reset(int all);

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  /// True if calling all has paid for a while: then waits may be long, since they have been short.
  bool is_good() const { return good_.load(std::memory_order_relaxed); }

  /// Reports a job that would have taken `gained` longer on one thread, but whose caller waited for `lost` in vain.
  void note(double gained, double lost);
  /// Reports that work of `cost` was done by fewer than all. After enough of it more are called.
  void did_without(double cost);

 private:
  void call_fewer();

  std::atomic<int> all_{1};
  std::atomic<int> threads_{1};
  std::atomic<bool> good_{true};
  std::atomic<double> credit_{0};  // the gain of calling that many of late
  std::atomic<double> gained_{0};  // since that many are called
  std::atomic<double> lost_{0};    // since that many are called
  std::atomic<double> left_{0};    // work until more are called
};

}  // namespace gradus
