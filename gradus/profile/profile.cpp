/// Taking a profile of this thread.
#include "gradus/profile/profile.h"
#include "gradus/base/error.h"
#include "gradus/base/threads.h"
#include "gradus/function/pending.h"
#include "gradus/graph/call_context.h"
#include "gradus/graph/node.h"
#include "gradus/profile/make_report.h"
#include "gradus/profile/recording.h"
#include "gradus/tensor/memory.h"

namespace gradus {

ProfileScope::ProfileScope(std::string_view name) : log_(CallContext::here().log) {
  if (!log_) [[likely]]
    return;
  profile_ = Ref<ProfileListener>(&log_->profile());
  name_ = profile_->name(name);
  log_->begin(Activity::host, ActivityEvent::Kind::scope, name_);
  depth_ = log_->depth();
}

ProfileScope::~ProfileScope() {
  if (!log_) [[likely]]
    return;
  if (CallContext::here().log == log_ && log_->depth() == depth_) {
    log_->end({.kind = ActivityEvent::Kind::scope, .name = name_});
    return;
  }
  static_cast<ProfileRecording&>(*profile_).note_problem(
      "profile: a ProfileScope ended on another thread than it began on, or after a scope around it; make it a "
      "local object");
}

namespace detail {

ProfileReport profile_of(const std::function<void()>& work) {
  require(CallContext::here().log == nullptr,
          "profile: a profile of this thread is being taken already; give parts of the work rows of their own by "
          "ProfileScope, or take the inner profile on a thread of its own");
  require(CallContext::here().context == nullptr,
          "profile: called while a function is traced, when nothing is computed; call it around the function");
  const Ref<ProfileRecording> recording(new ProfileRecording);
  recording->main().prepare(num_threads());  // each thread of the pool has a track
  std::size_t peak = 0;
  std::int64_t unobserved = 0;
  {
    const memory::PeakWatch watch;
    const FieldScope<&CallContext::log> scope(&recording->main());
    Pending& queue = Pending::mine();
    const std::uint64_t youngest = new_sequence();
    const std::int64_t recorded = queue.recorded(), started = queue.dispatches();
    work();
    recording->main().settle();
    const bool none_ran = queue.dispatches() == started;  // in that case nodes that have died since have not run either
    unobserved = none_ran ? queue.recorded() - recorded : Pending::waiting_since(youngest);
    peak = static_cast<std::size_t>(watch.bytes());
  }
  require(recording->main().depth() == 0,
          "profile: a ProfileScope that began within the work has not ended by its end; make it a local object");
  const std::string problem = recording->problem();
  require(problem.empty(), problem);
  ProfileReport report = make_report(recording->finish(), peak, num_threads());
  report.unobserved = unobserved;
  return report;
}

}  // namespace detail
}  // namespace gradus
