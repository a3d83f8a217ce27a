/// Clocks and counters.
#include "gradus/backend/cpu/run/kernel_times.h"
#include <chrono>

namespace gradus {
namespace {

std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void clear(KernelTimes::Entry& entry) {
  entry.nanoseconds.store(0, std::memory_order_relaxed);
  entry.runs.store(0, std::memory_order_relaxed);
}

}  // namespace

void KernelTimes::clear() {
  for (Entry& entry : thunks_) gradus::clear(entry);
  gradus::clear(whole_);
  most_threads_.store(0, std::memory_order_relaxed);
}

void KernelTimes::add_team(int threads) {
  int most = most_threads();
  while (threads > most && !most_threads_.compare_exchange_weak(most, threads, std::memory_order_relaxed)) {}
}

std::int64_t KernelTimes::of_thunks() const {
  std::int64_t sum = 0;
  for (const Entry& entry : thunks_) sum += entry.nanoseconds.load(std::memory_order_relaxed);
  return sum;
}

TimedRun::TimedRun(KernelTimes::Entry* entry) : entry_(entry) {
  if (entry) began_ = nanoseconds_now();
}
TimedRun::~TimedRun() {
  if (!entry_) return;
  entry_->nanoseconds.fetch_add(nanoseconds_now() - began_, std::memory_order_relaxed);
  entry_->runs.fetch_add(1, std::memory_order_relaxed);
}

void run_measured(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const MeasuredJob& job = *static_cast<const MeasuredJob*>(arguments->data);
  KernelArguments own = *arguments;
  own.data = job.data;
  const std::int64_t began = nanoseconds_now();
  job.run(&own, begin, end);
  job.entry->nanoseconds.fetch_add(nanoseconds_now() - began, std::memory_order_relaxed);
  const bool is_first_part = begin == 0 && (!job.controls || arguments->member->worker == 0);
  if (is_first_part) job.entry->runs.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace gradus
