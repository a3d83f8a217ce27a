/// ActivityLog: the record of a thread's work while a profile is taken of it. Code that is worth a line opens an entry
/// and closes it; entries nest. A thread without a profile has no log (CallContext::log is null).
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "gradus/base/ref.h"
#include "gradus/base/short_lock.h"

namespace gradus {

/// The activity that a thread spends its time with. Host is none of the others.
enum class Activity : std::uint8_t { host, compute, input, compile, communication };
inline constexpr std::size_t activity_count = 5;

/// An entry that was closed, or a sample. Times are nanoseconds of the steady clock.
struct ActivityEvent {
  enum class Kind : std::uint8_t {
    kernel,         // a part of a kernel, on one thread; `name`: the program, `part`: its thunk
    run,            // a program, on the thread that started it; `part`: its threads; `own`: they wait so long
    stage,          // elements of a dataset stage; `count`: their number; `part` 1: elements differ between epochs
    fetch,          // a reader takes an element; `part`: 1 if it was made ahead; `bytes`: the epoch
    making,         // a data thread makes an element
    compile,        // tracing and compiling
    communication,  // with other processes; `bytes`: sent and received
    scope,          // a ProfileScope
    room,           // a data thread waits until there is room for what it makes
    memory,         // of a run: `bytes` are live, `count` of them temporaries, `own` of these activations
    held,           // a dataset keeps `bytes` in memory
    queue,          // of a prefetcher: `count` elements of `bytes` are ready
  };
  Kind kind = Kind::scope;
  bool is_first = false;  // of a kernel: the part that counts as its run
  std::int32_t part = 0;
  std::uint64_t name = 0;
  std::int64_t begin = 0, end = 0;
  std::int64_t own = 0;  // the part outside of entries within; of a stage: outside of other stages and compiling
  std::int64_t count = 1, bytes = 0;
  std::uint64_t flow = 0;  // of a batch, from its making to its use; 0: none
  bool recurs = false;     // within another scope of its name; of a fetch: within another fetch
};

/// A thunk of a program as a profile names it.
struct ProfiledKernel {
  std::string name;          // "matmul+add+relu"
  std::string layer;         // "sequential/dense_1"; empty: of none
  bool is_gradient = false;  // it computes a gradient
  bool is_narrow = false;    // it multiplies what has 16 bits
  double flops = 0;          // of a run
  std::int64_t bytes = 0;    // read and written in a run
};
/// A program as a profile names it.
struct ProfiledProgram {
  std::vector<ProfiledKernel> kernels;  // by thunk
  std::int64_t temporaries = 0;         // bytes, and
  std::int64_t activations = 0;         // the part that forward steps leave for gradients
};

/// Sums of what a log has written under one name.
struct ActivitySum {
  std::int64_t calls = 0, seconds_ns = 0, own_ns = 0, bytes = 0, waiting_ns = 0;
  double flops = 0;
};

namespace detail::inline rooms {

class ActivityLog;

/// The taker of a profile. One serves all threads that work for the profiled one.
class ProfileListener : public RefCounted {
 public:
  virtual ~ProfileListener() = default;
  /// Never given again.
  std::uint64_t number() const { return number_; }
  /// A log for a thread that makes elements. Logs live as long as this.
  virtual ActivityLog& log_of_data_thread() = 0;
  /// The log of the thread of a device beside the caller's.
  virtual ActivityLog& log_of_device(std::string_view device) = 0;
  /// The log of worker `worker` of the team that `leader` leads.
  virtual std::unique_ptr<ActivityLog> log_of_worker(const ActivityLog& leader, int worker) = 0;
  /// The number of a name.
  virtual std::uint64_t name(std::string_view text) = 0;
  /// Makes a program known by its number.
  virtual void describe(std::uint64_t program, const std::function<ProfiledProgram()>& description) = 0;
  /// The run is over, and so are the entries of its team, which are taken from their logs.
  virtual void finish_run(ActivityLog& leader, const ActivityEvent& run) = 0;
  /// A Variable's memory: of an optimizer's state, or a weight.
  virtual void note_variable(std::uint64_t id, std::int64_t bytes, bool of_optimizer) = 0;
  /// A number for a batch.
  virtual std::uint64_t next_flow() = 0;

 private:
  static std::uint64_t next_number();
  const std::uint64_t number_ = next_number();
};
inline void dispose(ProfileListener* listener) noexcept { delete listener; }

/// Only its own thread writes it, but for keep(), drain() and close(), which lock.
class ActivityLog {
 public:
  explicit ActivityLog(ProfileListener& profile) : profile_(profile), since_(now()), began_(since_) {}
  ActivityLog(const ActivityLog&) = delete;

  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  ProfileListener& profile() const { return profile_; }

  // Entries.
  /// `kind` and `name` are those of end(), for entries that may be nested within their like, of which only the outer
  /// one counts.
  void begin(Activity activity, ActivityEvent::Kind kind = ActivityEvent::Kind::kernel, std::uint64_t name = 0) {
    const std::int64_t time = now();
    frames_.push_back({.begin = time, .before = switch_to(activity, time), .kind = kind, .name = name});
  }
  /// Closes the innermost entry, whose times this fills in, and keeps it.
  void end(ActivityEvent event) {
    close_frame(event);
    keep(event);
  }
  /// Closes the innermost entry, that of a run.
  void end_run(ActivityEvent event) {
    close_frame(event);
    profile_.finish_run(*this, event);
  }
  /// Closes the innermost entry, of which only the time counts.
  void end_unkept() {
    ActivityEvent event;
    close_frame(event);
  }
  /// An entry that is a part of a kernel is kept until its run is over.
  void begin_kernel() { frames_.push_back({.begin = now()}); }
  void end_kernel(std::int32_t thunk, bool is_first) {
    ActivityEvent event{ActivityEvent::Kind::kernel, is_first, thunk, program_};
    close_frame(event);
    kernels_.push_back(event);
  }
  std::size_t depth() const { return frames_.size(); }
  /// Assigns programs from now on to this stage of a dataset, by its name; 0: to none. Returns the stage before.
  std::uint64_t enter_stage(std::uint64_t name) { return std::exchange(stage_, name); }
  std::uint64_t stage() const { return stage_; }
  /// Bytes moved, operations and time lost count for the entries around it.
  void add_work(std::int64_t bytes, double flops, std::int64_t waiting) {
    if (frames_.empty()) return;
    frames_.back().bytes += bytes;
    frames_.back().flops += flops;
    frames_.back().waiting += waiting;
  }

  /// The next run is that of a compiled function.
  void note_function() { ++function_runs_; }
  std::int64_t function_runs() const { return function_runs_; }
  /// True unless it was asked of the same thing just before.
  bool is_new(const void* thing) { return std::exchange(seen_, thing) != thing; }

  // Programs.
  /// The program that kernels belong to from now on; returns the one before.
  std::uint64_t enter(std::uint64_t program, const std::function<ProfiledProgram()>& description) {
    if (program != program_ && program != last_known_) {
      profile_.describe(program, description);
      last_known_ = program;
    }
    return std::exchange(program_, program);
  }
  void leave(std::uint64_t before) { program_ = before; }

  // Teams.
  /// Makes sure that the workers of a team of this thread have logs.
  void prepare(int team) {
    while (static_cast<int>(workers_.size()) < team - 1)
      workers_.push_back(profile_.log_of_worker(*this, static_cast<int>(workers_.size()) + 1));
  }
  ActivityLog& worker(int worker) { return worker == 0 ? *this : *workers_[static_cast<std::size_t>(worker - 1)]; }
  std::size_t workers() const { return workers_.size() + 1; }
  /// The runs that have ended since the last call.
  std::vector<ActivityEvent>& kernels() { return kernels_; }

  // Batches.
  /// These are the fields of a batch.
  void note_batch(std::uint64_t flow, std::vector<const void*> fields) {
    batch_flow_ = flow;
    batch_ = std::move(fields);
  }
  bool awaits_batch() const { return batch_flow_ != 0; }
  /// The batch that `memory` is of, if it is the first time that this is asked of one; else 0.
  std::uint64_t flow_of(const void* memory) {
    for (const void* field : batch_)
      if (field == memory) return std::exchange(batch_flow_, 0);
    return 0;
  }

  // From any thread.
  void keep(const ActivityEvent& event);
  /// The entries of a run: they become no sums here.
  void keep_kernels(const std::vector<ActivityEvent>& kernels);
  struct Kept {
    std::vector<ActivityEvent> events;
    std::vector<std::pair<ActivityEvent::Kind, std::uint64_t>> of_sums;  // kind and name of each sum
    std::vector<ActivitySum> sums;
    std::array<std::int64_t, activity_count> nanoseconds{};  // of its own thread, by activity
    std::int64_t begin = 0, end = 0;
    std::size_t left_out = 0;  // events past most_events
    std::int64_t function_runs = 0;
  };
  /// On its own thread: its time so far is accounted for.
  void settle();
  /// Ends the recording; gives the entries kept.
  Kept close();
  static constexpr std::size_t most_events = 200'000;  // of one log

 private:
  struct Frame {
    std::int64_t begin = 0, children = 0, bytes = 0, waiting = 0;
    std::int64_t of_others = 0;  // time within that does not belong to the reading stage: other stages, and compiling
    double flops = 0;
    Activity before = Activity::host;
    ActivityEvent::Kind kind = ActivityEvent::Kind::kernel;
    std::uint64_t name = 0;
  };
  /// The time of stages that a stage reads is not its own; the time of its programs is.
  static bool is_of_others(ActivityEvent::Kind kind) {
    using Kind = ActivityEvent::Kind;
    return kind == Kind::stage || kind == Kind::compile || kind == Kind::communication;
  }
  bool is_within_its_like(const Frame& frame) const {
    if (frame.kind == ActivityEvent::Kind::kernel) return false;
    for (const Frame& around : frames_)
      if (around.kind == frame.kind && (around.name == frame.name || frame.kind == ActivityEvent::Kind::fetch))
        return true;
    return false;
  }
  /// A dataset's computations are input. Host, as an entry's activity, means none.
  Activity switch_to(Activity activity, std::int64_t time) {
    const Activity before = current_;
    const bool stays = activity == Activity::host || (before == Activity::input && activity == Activity::compute);
    if (!stays) set(activity, time);
    return before;
  }
  void set(Activity activity, std::int64_t time) {
    nanoseconds_[static_cast<std::size_t>(current_)] += time - since_;
    since_ = time;
    current_ = activity;
  }
  void close_frame(ActivityEvent& event) {
    const std::int64_t time = now();
    const Frame frame = frames_.back();
    frames_.pop_back();
    const std::int64_t whole = time - frame.begin;
    event.begin = frame.begin;
    event.end = time;
    event.own = whole - (event.kind == ActivityEvent::Kind::stage ? frame.of_others : frame.children);
    event.recurs = is_within_its_like(frame);
    last_ = frame;
    if (event.kind != ActivityEvent::Kind::kernel && current_ != frame.before) set(frame.before, time);
    if (frames_.empty()) return;
    frames_.back().children += whole;
    frames_.back().of_others += is_of_others(event.kind) ? whole : frame.of_others;
    add_work(frame.bytes, frame.flops, frame.waiting);
  }
  ActivitySum& sum_of(ActivityEvent::Kind kind, std::uint64_t name);

  ProfileListener& profile_;
  std::vector<Frame> frames_;
  Frame last_;  // the one that was closed last
  Activity current_ = Activity::host;
  std::int64_t since_;
  const std::int64_t began_;
  std::array<std::int64_t, activity_count> nanoseconds_{};
  std::uint64_t program_ = 0, last_known_ = 0, stage_ = 0;
  std::vector<ActivityEvent> kernels_;
  std::vector<std::unique_ptr<ActivityLog>> workers_;
  const void* seen_ = nullptr;
  std::int64_t function_runs_ = 0;
  std::vector<const void*> batch_;
  std::uint64_t batch_flow_ = 0;

  ShortLock guard_;  // guards the members below
  bool is_open_ = true;
  Kept kept_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
