/// How many threads are worth calling for short work. A thread that has lost its core to another process comes back
/// after that one's slice of time, milliseconds later, and whoever meets it waits as long: a step of 20 us then takes
/// less on one thread. So what short jobs gain and what their waits cost is added up, and after losses fewer threads
/// are called for a while: the longer the more was lost.
#pragma once
#include <atomic>

namespace gradus {

/// Times are nanoseconds, and those of work are what the cost model says of one thread, so that nobody looks at a
/// clock. Any thread may ask and tell; what gets lost where two tell at once does not matter.
class Turnout {
 public:
  explicit Turnout(int all) { reset(all); }
  /// There are so many now.
  void reset(int all);

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  /// Whether calling all has paid for a while: then waits may be long, since they have been short.
  bool is_good() const { return good_.load(std::memory_order_relaxed); }

  /// A job of so many threads would have taken `gained` longer on one, but its caller waited for `lost` in vain.
  void note(double gained, double lost);
  /// Work of `cost` was done by fewer than all. After enough of it more are called.
  void did_without(double cost);

 private:
  void call_fewer();

  std::atomic<int> all_{1};
  std::atomic<int> threads_{1};
  std::atomic<bool> good_{true};
  std::atomic<double> credit_{0};  // what calling so many has paid, of late
  std::atomic<double> gained_{0};  // since so many are called
  std::atomic<double> lost_{0};    // likewise
  std::atomic<double> left_{0};    // work until more are called
};

}  // namespace gradus
