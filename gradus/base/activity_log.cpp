/// Keeping entries.
#include "gradus/base/activity_log.h"
#include "gradus/base/rooms.h"
#include <algorithm>
#include <atomic>
#include <mutex>

namespace gradus {

std::uint64_t ProfileListener::next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

ActivitySum& ActivityLog::sum_of(ActivityEvent::Kind kind, std::uint64_t name) {
  const std::pair key(kind, name);
  for (std::size_t i = 0; i < kept_.of_sums.size(); ++i)
    if (kept_.of_sums[i] == key) return kept_.sums[i];
  kept_.of_sums.push_back(key);
  return kept_.sums.emplace_back();
}

void ActivityLog::keep(const ActivityEvent& event) {
  using Kind = ActivityEvent::Kind;
  const std::lock_guard lock(guard_);
  if (!is_open_) return;
  if (event.kind != Kind::kernel && event.kind != Kind::memory && event.kind != Kind::queue &&
      event.kind != Kind::held) {
    ActivitySum& sum = sum_of(event.kind, event.kind == Kind::run ? 0 : event.name);
    sum.calls += event.count;
    if (!event.recurs) sum.seconds_ns += event.end - event.begin;
    sum.own_ns += event.own;
    sum.bytes += event.bytes;
    if (event.kind == Kind::scope && !event.recurs) {
      sum.bytes += last_.bytes;
      sum.flops += last_.flops;
      sum.waiting_ns += last_.waiting;
    }
  }
  if (kept_.events.size() < most_events) kept_.events.push_back(event);
  else ++kept_.left_out;
}

void ActivityLog::keep_kernels(const std::vector<ActivityEvent>& kernels) {
  const std::lock_guard lock(guard_);
  if (!is_open_) return;
  const std::size_t room = most_events - kept_.events.size(), count = std::min(room, kernels.size());
  kept_.events.insert(kept_.events.end(), kernels.begin(), kernels.begin() + static_cast<std::ptrdiff_t>(count));
  kept_.left_out += kernels.size() - count;
}

void ActivityLog::settle() {
  set(current_, now());
  const std::lock_guard lock(guard_);
  kept_.nanoseconds = nanoseconds_;
  kept_.end = since_;
  kept_.function_runs = function_runs_;
}

ActivityLog::Kept ActivityLog::close() {
  const std::lock_guard lock(guard_);
  is_open_ = false;
  kept_.begin = began_;
  return std::exchange(kept_, {});
}

}  // namespace gradus
