/// The speed of one thread of this machine: measured once, for the cost model, explain() and profile() alike. Results
/// never depend on it: it decides which thread computes what, not how.
#pragma once
#include "gradus/backend/kernel.h"

namespace gradus {

/// Measured at the first call, in about a millisecond: the best of many short attempts, so that other work on the
/// machine counts little. Products of 16 bits take the instruction that this library's products take.
const ThreadRates& thread_rates();

/// Nanoseconds on one thread of work that moves `bytes` bytes and does `flops` operations.
double estimated_ns(const ThreadRates& rates, std::int64_t bytes, std::int64_t flops);

/// Other rates for the whole process while it lives: for tests. Scopes of one thread nest; a binding keeps the rates it
/// was bound with.
class ThreadRatesScope {
 public:
  explicit ThreadRatesScope(const ThreadRates& rates);
  ~ThreadRatesScope();
  ThreadRatesScope(const ThreadRatesScope&) = delete;
  ThreadRatesScope& operator=(const ThreadRatesScope&) = delete;

 private:
  ThreadRates rates_;
  const ThreadRates* before_;
};

}  // namespace gradus
