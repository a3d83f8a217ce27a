/// Reports of a program's run to the profile of its thread, if one is taken. Without a profile it asks a pointer.
#pragma once
#include "gradus/backend/cpu/run/binding.h"
#include "gradus/base/activity_log.h"
#include "gradus/graph/call_context.h"

namespace gradus {

/// A run, from the leader's view.
class ProfiledRun {
 public:
  ProfiledRun(const Binding& binding, std::span<const Ref<Buffer>> inputs)
      : log_(CallContext::here().log), binding_(binding) {
    if (log_) [[unlikely]]
      begin(inputs);
  }
  ~ProfiledRun() {
    if (log_) [[unlikely]]
      end();
  }
  ProfiledRun(const ProfiledRun&) = delete;

 private:
  void begin(std::span<const Ref<Buffer>> inputs);
  void end();
  ActivityLog* const log_;
  const Binding& binding_;
  std::uint64_t flow_ = 0;
};

/// A worker's part of a program, or of one that runs within another one.
class ProfiledPart {
 public:
  ProfiledPart(ActivityLog* log, const Binding& binding) : log_(log) {
    if (log_) [[unlikely]]
      before_ = enter(*log_, binding);
  }
  ~ProfiledPart() {
    if (log_) [[unlikely]]
      log_->leave(before_);
  }
  ProfiledPart(const ProfiledPart&) = delete;

 private:
  static std::uint64_t enter(ActivityLog& log, const Binding& binding);
  ActivityLog* const log_;
  std::uint64_t before_ = 0;
};

/// A part of a job. `is_first`: it counts as the job's run.
class ProfiledJob {
 public:
  ProfiledJob(ActivityLog* log, const Job& job, bool is_first) : log_(log), job_(job), is_first_(is_first) {
    if (log_) [[unlikely]]
      log_->begin_kernel();
  }
  ~ProfiledJob() {
    if (log_) [[unlikely]]
      log_->end_kernel(static_cast<std::int32_t>(job_.thunk), is_first_);
  }
  ProfiledJob(const ProfiledJob&) = delete;

 private:
  ActivityLog* const log_;
  const Job& job_;
  const bool is_first_;
};

}  // namespace gradus
