/// Read-ahead: background threads make elements in the order of their indices and keep a bounded number of them ready.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include "gradus/base/activity_log.h"
#include "gradus/base/rooms.h"
#include "gradus/data/stage.h"

namespace gradus {

/// Makes elements ahead of one reader.
class Prefetcher {
 public:
  /// Makes elements [first, last) of one epoch of `stage`. options.buffers is positive, or autotune: then as many
  /// elements within max_bytes, and as many threads, as keep the reader from waiting.
  Prefetcher(StagePointer stage, std::int64_t epoch, std::int64_t first, std::int64_t last, PrefetchOptions options);
  /// Ends the threads. Their work is abandoned at the next element of any stage.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;

  /// The next element. Throws the error of making it. `flow`: its number in the profile of this thread.
  Tensors next(std::uint64_t& flow);

 private:
  struct Slot {
    Tensors element;
    std::exception_ptr problem;
    bool full = false;
    std::uint64_t flow = 0, profile = 0;  // its number in a profile, and that one's
  };
  class Making;
  void start_thread();
  void produce();
  bool has_room() const;
  bool is_ready(std::int64_t wanted) const;
  void note_size(const Tensors& element);
  void wait(std::unique_lock<std::mutex>& lock);
  void adapt();
  void stop() noexcept;
  void listen();
  void note_queue(ActivityLog* log) const;

  const StagePointer stage_;
  const std::int64_t epoch_, last_, max_bytes_;
  const bool tunes_;

  std::mutex guard_;  // of all fields below
  std::condition_variable room_, ready_;
  Ref<ProfileListener> profile_;        // of the reader
  std::deque<Slot> slots_;              // elements taken ... claimed - 1
  std::int64_t full_ = 0;               // slots with their element
  std::int64_t taken_;                  // index of the next element for the reader
  std::int64_t claimed_;                // index of the next element for a thread
  std::int64_t buffers_;                // most slots_
  std::int64_t most_ = 0;               // most buffers_; 0: not known yet
  std::int64_t largest_ = 0;            // bytes of the largest element so far
  std::int64_t wanted_ = 0;             // index that the reader waits for; 0: it does not wait
  int idle_ = 0;                        // threads that wait for room
  bool was_full_ = false;               // the queue was full since the reader last waited
  int waits_in_a_row_ = 0;              // waits of the reader without a full queue between them
  bool may_grow_ = true;                // the system has not refused a further thread
  std::atomic<bool> stopping_ = false;  // changed under the guard
  std::vector<std::thread> threads_;    // this prefetcher's own
};

}  // namespace gradus
