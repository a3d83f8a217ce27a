#include "gradus/data/prefetch.h"
#include <pthread.h>
#include <signal.h>
#include <algorithm>
#include <system_error>
#include "gradus/base/thread_pool.h"

namespace gradus {
namespace {

constexpr std::int64_t first_buffers = 2, most_buffers = 64, most_bytes = 32 << 20;
constexpr int most_threads = 16;

/// Signals go to the program's own threads: what is started in its lifetime blocks them.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Prefetcher::Prefetcher(StagePointer stage, std::int64_t epoch, std::int64_t first, std::int64_t last, int buffers)
    : stage_(std::move(stage)),
      epoch_(epoch),
      last_(last),
      tunes_(buffers == autotune),
      taken_(first),
      claimed_(first),
      buffers_(tunes_ ? first_buffers : buffers) {
  const NoSignals no_signals;
  const int threads = std::clamp(stage_->parallel_calls(), 1, most_threads);
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
      // As a job of one worker: what it computes stays on this thread and leaves the team to the training step.
      ThreadPool::global().run(1, [this](int, int) { produce(); });
    });
  } catch (const std::system_error& error) {
    throw ResourceExhausted(text("prefetch: the system refuses to start a thread: ", error.what(),
                                 "; end other threads, or read without prefetch"));
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

bool Prefetcher::has_room() const { return static_cast<std::int64_t>(slots_.size()) < buffers_; }

void Prefetcher::produce() {
  std::unique_ptr<Pass> pass;
  std::unique_lock lock(guard_);
  while (true) {
    while (!stopping_ && claimed_ < last_ && !has_room()) {
      was_full_ = true;
      ++idle_;
      room_.wait(lock);
      --idle_;
    }
    if (stopping_ || claimed_ == last_) return;
    const std::int64_t index = claimed_++;
    Slot& slot = slots_.emplace_back();  // stays where it is while others come and go at the ends
    lock.unlock();
    Tensors element;
    std::exception_ptr problem;
    try {
      if (!pass) pass = stage_->open(epoch_);
      element = pass->at(index);
    } catch (...) { problem = std::current_exception(); }
    lock.lock();
    if (!problem && most_ == 0) note_size(element);
    slot = {std::move(element), problem, true};
    if (problem) claimed_ = last_;  // nothing behind it will be read
    if (waits_ && index == taken_) ready_.notify_one();
  }
}

/// What fits into the bound is known once there is an element.
void Prefetcher::note_size(const Tensors& element) {
  std::int64_t bytes = 1;
  for (const Tensor& field : element) bytes += static_cast<std::int64_t>(field.bytes());
  most_ = std::clamp(most_bytes / bytes, first_buffers, most_buffers);
}

/// The reader waits although the queue was full before: the stages are fast enough, but not evenly.
void Prefetcher::widen() {
  if (!tunes_ || !was_full_ || most_ == 0) return;
  buffers_ = std::min(2 * buffers_, most_);
  was_full_ = false;
}

Tensors Prefetcher::next() {
  std::unique_lock lock(guard_);
  internal_check(taken_ < last_, "an element past the end is asked of a prefetcher");
  const auto is_ready = [this] { return !slots_.empty() && slots_.front().full; };
  if (!is_ready()) {
    widen();
    if (idle_ > 0) room_.notify_all();
    waits_ = true;
    ready_.wait(lock, is_ready);
    waits_ = false;
  }
  Slot slot = std::move(slots_.front());
  slots_.pop_front();
  ++taken_;
  // Woken for several elements at once: a wake-up costs as much as a small batch.
  const bool wake = idle_ > 0 && 2 * static_cast<std::int64_t>(slots_.size()) <= buffers_;
  lock.unlock();
  if (wake) room_.notify_all();
  if (slot.problem) std::rethrow_exception(slot.problem);
  return std::move(slot.element);
}

}  // namespace gradus
