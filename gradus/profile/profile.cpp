/// Taking a profile of this thread.
#include "gradus/profile/profile.h"
#include <mutex>
#include <optional>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/threads.h"
#include "gradus/function/pending.h"
#include "gradus/graph/call_context.h"
#include "gradus/graph/node.h"
#include "gradus/profile/make_report.h"
#include "gradus/profile/recording.h"
#include "gradus/profile/session.h"
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

namespace {

/// Keeps the recording of a profile that another thread dropped: the thread that began it records on.
void keep_for_ever(const Ref<ProfileRecording>& recording) {
  static std::mutex guard;
  static auto* const kept = new std::vector<Ref<ProfileRecording>>;
  const std::lock_guard lock(guard);
  kept->push_back(recording);
}

}  // namespace

struct ProfileSession::State {
  const Ref<ProfileRecording> recording{new ProfileRecording};
  std::optional<memory::PeakWatch> watch;
  std::uint64_t youngest = 0;
  std::int64_t recorded = 0, started = 0;

  State() {
    recording->main().prepare(num_threads());  // each thread of the pool has a track
    watch.emplace();
    Pending& queue = Pending::mine();
    youngest = new_sequence();
    recorded = queue.recorded(), started = queue.dispatches();
    CallContext::here().log = &recording->main();
  }
  bool is_here() const { return CallContext::here().log == &recording->main(); }
  ~State() {
    if (is_here()) CallContext::here().log = nullptr;
    else keep_for_ever(recording);
  }
  /// Ops that were recorded, and have not run.
  std::int64_t unobserved() const {
    Pending& queue = Pending::mine();
    const bool none_ran = queue.dispatches() == started;  // in that case nodes that have died since have not run either
    return none_ran ? queue.recorded() - recorded : Pending::waiting_since(youngest);
  }
};

ProfileSession::ProfileSession() {
  require(CallContext::here().log == nullptr,
          "profile: a profile of this thread is being taken already; give parts of the work rows of their own by "
          "ProfileScope, or take the inner profile on a thread of its own");
  require(CallContext::here().context == nullptr,
          "profile: called while a function is traced, when nothing is computed; call it around the function");
  state_ = std::make_unique<State>();
}

ProfileSession::~ProfileSession() = default;

ProfileReport ProfileSession::finish() {
  require(state_ != nullptr, "profile: it has ended already");
  require(state_->is_here(), "profile: it began on another thread, which has to end it");
  const std::unique_ptr<State> state = std::move(state_);
  ProfileRecording& recording = *state->recording;
  recording.main().settle();
  const std::int64_t unobserved = state->unobserved();
  const auto peak = static_cast<std::size_t>(state->watch->bytes());
  state->watch.reset();
  CallContext::here().log = nullptr;
  require(recording.main().depth() == 0,
          "profile: a ProfileScope that began within the work has not ended by its end; make it a local object");
  const std::string problem = recording.problem();
  require(problem.empty(), problem);
  ProfileReport report = make_report(recording.finish(), peak, num_threads());
  report.unobserved = unobserved;
  return report;
}

ProfileReport detail::profile_of(const std::function<void()>& work) {
  ProfileSession session;
  work();
  return session.finish();
}

}  // namespace gradus
