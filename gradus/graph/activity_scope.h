/// ActivityScope: the work of a thread in the lifetime of an object, for the profile that is taken of it, if one is.
#pragma once
#include "gradus/base/activity_log.h"
#include "gradus/base/rooms.h"
#include "gradus/graph/call_context.h"

namespace gradus {

class ActivityScope {
 public:
  [[nodiscard]] ActivityScope(Activity activity, ActivityEvent::Kind kind, std::string_view name)
      : log_(CallContext::here().log) {
    if (log_) [[unlikely]]
      begin(activity, kind, name);
  }
  ~ActivityScope() {
    if (log_) [[unlikely]]
      log_->end(event_);
  }
  ActivityScope(const ActivityScope&) = delete;
  /// Bytes that were sent and received.
  void add_bytes(std::int64_t bytes) { event_.bytes += bytes; }

 private:
  void begin(Activity activity, ActivityEvent::Kind kind, std::string_view name) {
    event_.kind = kind;
    event_.name = log_->profile().name(name);
    log_->begin(activity);
  }
  ActivityLog* const log_;
  ActivityEvent event_;
};

/// Tracing or compiling.
class CompileActivity : ActivityScope {
 public:
  [[nodiscard]] explicit CompileActivity(std::string_view name)
      : ActivityScope(Activity::compile, ActivityEvent::Kind::compile, name) {}
};

}  // namespace gradus
