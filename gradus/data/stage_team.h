/// Threads of the pool that make elements of a stage together.
#pragma once
#include <algorithm>
#include <vector>
#include "gradus/base/activity_log.h"
#include "gradus/base/rooms.h"
#include "gradus/base/thread_pool.h"
#include "gradus/graph/call_context.h"

namespace gradus {

/// While it lives, the time of this thread counts as that of a stage in `log`, its own; null: no profile is taken.
class StageMember {
 public:
  StageMember(ActivityLog* log, std::uint64_t stage) : log_(log), stage_(stage), before_(CallContext::here().log) {
    if (!log_) [[likely]]
      return;
    CallContext::here().log = log_;
    log_->begin(Activity::host);
    log_->enter_stage(stage_);
  }
  ~StageMember() {
    if (!log_) [[likely]]
      return;
    log_->enter_stage(0);
    log_->end({.kind = ActivityEvent::Kind::stage, .name = stage_, .count = 0});
    CallContext::here().log = before_;
  }
  StageMember(const StageMember&) = delete;

 private:
  ActivityLog* const log_;
  const std::uint64_t stage_;
  ActivityLog* const before_;
};

/// Calls `work(worker, workers)` on up to `threads` threads of the pool, without waiting for threads that are late. In
/// a profile of this thread, their time counts as that of the stage that it is in.
template <class Work> void run_stage_team(int threads, const Work& work) {
  ActivityLog* const leader = CallContext::here().log;
  std::vector<ActivityLog*> logs{nullptr};  // by worker; this thread has its entry already
  if (leader) {
    const int team = std::min(threads, ThreadPool::global().threads());
    leader->prepare(team);
    for (int worker = 1; worker < team; ++worker) logs.push_back(&leader->worker(worker));
  }
  const std::uint64_t stage = leader ? leader->stage() : 0;
  ThreadPool::global().run(threads,
                           [&](int worker, int workers) {
                             const auto place = static_cast<std::size_t>(worker);
                             const StageMember member(place < logs.size() ? logs[place] : nullptr, stage);
                             work(worker, workers);
                           },
                           {.claims = true});
}

}  // namespace gradus
