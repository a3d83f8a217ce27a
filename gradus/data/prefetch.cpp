#include "gradus/data/prefetch.h"
#include <pthread.h>
#include <algorithm>
#include <chrono>
#include <system_error>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/no_signals.h"
#include "gradus/base/thread_pool.h"
#include "gradus/data/batch_readers.h"
#include "gradus/function/resident.h"
#include "gradus/graph/call_context.h"

namespace gradus {
namespace {

constexpr std::int64_t first_buffers = 8, fewest_buffers = 2, most_buffers = 64;
constexpr int most_threads = 16;
/// Where elements cost less than a wake-up the reader sleeps until several are ready, for this long at most.
constexpr std::chrono::microseconds patience{50};
constexpr int waits_until_another_thread = 3;

/// Counts the time of waits.
class Waiting {
 public:
  explicit Waiting(std::atomic<std::int64_t>& total) : total_(total) {}
  ~Waiting() { total_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::atomic<std::int64_t>& total_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

Prefetcher::Prefetcher(StagePointer stage, std::int64_t epoch, std::int64_t first, std::int64_t last,
                       PrefetchOptions options)
    : stage_(std::move(stage)),
      epoch_(epoch),
      last_(last),
      max_bytes_(options.max_bytes),
      tunes_(options.buffers == autotune),
      taken_(first),
      claimed_(first),
      buffers_(tunes_ ? first_buffers : options.buffers) {
  const NoSignals no_signals;
  listen();
  // One where it may choose, and where elements come in order only.
  const int threads = stage_->is_counted() ? std::clamp(stage_->parallel_calls(), 1, most_threads) : 1;
  try {
    for (int i = 0; i < threads; ++i) start_thread();
  } catch (...) {
    stop();
    throw;
  }
}

Prefetcher::~Prefetcher() { stop(); }

void Prefetcher::start_thread() {
  try {
    threads_.emplace_back([this] {
      pthread_setname_np(pthread_self(), "gradus-data");
      // As a job of one worker: its computations stay on this thread and leave the team to the training step.
      ThreadPool::global().run(1, [this](int, int) { produce(); });
    });
  } catch (const std::system_error& error) {
    throw ResourceExhausted(text("prefetch: the system starts no further thread (", error.what(),
                                 "), as limits such as ulimit -u and a container's pids.max make it; raise them, or "
                                 "read without prefetch"));
  }
}

void Prefetcher::stop() noexcept {
  {
    std::lock_guard lock(guard_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

/// Work for a reader is part of the reader's profile. Called with the guard held.
void Prefetcher::listen() {
  ActivityLog* const log = CallContext::here().log;
  ProfileListener* const profile = log ? &log->profile() : nullptr;
  if (profile != profile_.get()) [[unlikely]]
    profile_ = Ref<ProfileListener>(profile);
}

/// Called with the guard held.
void Prefetcher::note_queue(ActivityLog* log) const {
  if (!log) [[likely]]
    return;
  const std::int64_t now = ActivityLog::now();
  log->keep({.kind = ActivityEvent::Kind::queue,
             .name = log->profile().name(stage_->name_in_chain()),
             .begin = now,
             .end = now,
             .count = full_,
             .bytes = full_ * largest_});
}

/// A data thread makes elements, for the profile of their reader.
class Prefetcher::Making {
 public:
  /// Called with the guard held, before an element or a wait.
  void listen(const Ref<ProfileListener>& profile) {
    if (profile == profile_) [[likely]]
      return;
    profile_ = profile;
    log_ = profile ? &profile->log_of_data_thread() : nullptr;
  }
  ActivityLog* log() const { return log_; }
  void begin() const {
    if (log_) log_->begin(Activity::host);
  }
  void end_wait(const Stage& stage) const {
    if (log_) log_->end({.kind = ActivityEvent::Kind::room, .name = log_->profile().name(stage.name_in_chain())});
  }
  /// Gives the element its number.
  void end(const Stage& stage, Slot& slot, const Tensors& element) const {
    if (!log_) return;
    slot.profile = profile_->number();
    slot.flow = profile_->next_flow();
    std::int64_t bytes = 0;
    for (const Tensor& field : element) bytes += static_cast<std::int64_t>(field.bytes());
    log_->end({.kind = ActivityEvent::Kind::making,
               .name = profile_->name(stage.name_in_chain()),
               .bytes = bytes,
               .flow = slot.flow});
  }

 private:
  Ref<ProfileListener> profile_;
  ActivityLog* log_ = nullptr;
};

bool Prefetcher::has_room() const { return static_cast<std::int64_t>(slots_.size()) < buffers_; }

void Prefetcher::produce() {
  const HostFloats floats;  // as in a pass without prefetch: generators compute the same
  const StopScope stops(stopping_);
  std::unique_ptr<Pass> pass;
  Making making;
  std::unique_lock lock(guard_);
  while (true) {
    making.listen(profile_);
    if (!stopping_ && claimed_ < last_ && !has_room()) {
      const Waiting waiting(stage_->times().threads_waited);
      making.begin();
      while (!stopping_ && claimed_ < last_ && !has_room()) {
        was_full_ = true;
        ++idle_;
        room_.wait(lock);
        --idle_;
      }
      making.end_wait(*stage_);
      making.listen(profile_);
    }
    if (stopping_ || claimed_ == last_) return;
    const std::int64_t index = claimed_++;
    Slot& slot = slots_.emplace_back();  // stays where it is while others come and go at the ends
    lock.unlock();
    Slot made;
    making.begin();
    try {
      const FieldScope<&CallContext::log> logs(making.log());
      if (!pass) pass = stage_->open(epoch_);
      made.element = pass->at(index);
      // Ahead of the reader, too: values for a device are on their way to it.
      for (const Tensor& field : made.element)
        if (field.device().kind != DeviceKind::cpu && !batch_of_part(field)) resident(field);
    } catch (const StopScope::Stopped&) { return; } catch (...) {
      made.problem = std::current_exception();
    }
    making.end(*stage_, made, made.element);
    lock.lock();
    if (!made.element.empty()) note_size(made.element);
    made.full = true;
    slot = std::move(made);
    ++full_;
    note_queue(making.log());
    if (slot.problem || slot.element.empty()) claimed_ = last_;  // nothing behind it will be read
    if (wanted_ > 0 && is_ready(wanted_)) ready_.notify_one();
  }
}

/// The number that fits into the bound is known once there is an element, and by the largest.
void Prefetcher::note_size(const Tensors& element) {
  std::int64_t bytes = 1;
  for (const Tensor& field : element) bytes += static_cast<std::int64_t>(field.bytes());
  if (bytes <= largest_) return;
  largest_ = bytes;
  most_ = std::clamp(max_bytes_ / bytes, fewest_buffers, most_buffers);
  if (tunes_) buffers_ = std::min(buffers_, most_);
}

/// The next element, and as many in all as are wanted, or all that there will be.
bool Prefetcher::is_ready(std::int64_t wanted) const {
  if (slots_.empty() || !slots_.front().full) return false;
  return full_ >= wanted || (claimed_ == last_ && full_ == static_cast<std::int64_t>(slots_.size()));
}

/// The reader waits. If the queue was full since it last did, the stages are fast enough but uneven: more buffers. If
/// not, time and again, they are too slow, and the reader's own core is idle: another thread.
void Prefetcher::adapt() {
  if (!tunes_ || most_ == 0) return;
  if (was_full_) {
    buffers_ = std::min(2 * buffers_, most_);
    waits_in_a_row_ = 0;
    was_full_ = false;
  } else if (may_grow_ && stage_->is_counted() && stage_->parallel_calls() == autotune &&
             ++waits_in_a_row_ == waits_until_another_thread) {
    waits_in_a_row_ = 0;
    const auto most = std::min(ThreadPool::global().threads(), most_threads);
    if (static_cast<int>(threads_.size()) >= most) return;
    try {
      start_thread();
    } catch (const ResourceExhausted&) {
      may_grow_ = false;  // those that run will do
    }
  }
}

void Prefetcher::wait(std::unique_lock<std::mutex>& lock) {
  const Waiting waiting(stage_->times().readers_waited);
  const bool first_time = most_ == 0;
  adapt();
  if (idle_ > 0) room_.notify_all();
  if (!first_time) {
    wanted_ = std::max(buffers_ / 2, std::int64_t{1});
    ready_.wait_for(lock, patience, [this] { return is_ready(wanted_); });
  }
  wanted_ = 1;
  ready_.wait(lock, [this] { return is_ready(1); });
  wanted_ = 0;
}

Tensors Prefetcher::next(std::uint64_t& flow) {
  std::unique_lock lock(guard_);
  listen();
  internal_check(taken_ < last_, "an element past the end is asked of a prefetcher");
  if (!is_ready(1)) wait(lock);
  Slot slot = std::move(slots_.front());
  slots_.pop_front();
  --full_;
  ++taken_;
  if (profile_) [[unlikely]] {
    flow = slot.profile == profile_->number() ? slot.flow : 0;
    note_queue(CallContext::here().log);
  }
  // Woken for several elements at once, too.
  const bool wake = idle_ > 0 && 2 * static_cast<std::int64_t>(slots_.size()) <= buffers_;
  lock.unlock();
  if (wake) room_.notify_all();
  if (slot.problem) std::rethrow_exception(slot.problem);
  return std::move(slot.element);
}

}  // namespace gradus
