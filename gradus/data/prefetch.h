/// Reading ahead: background threads make elements in the order of their indices' turn and keep a bounded number of
/// them ready.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include "gradus/data/stage.h"

namespace gradus {

class Prefetcher {
 public:
  /// Elements [first, last) of one epoch of `stage`. `buffers` > 0, or autotune: as many as keep the reader from
  /// waiting, within 32 MiB.
  Prefetcher(StagePointer stage, std::int64_t epoch, std::int64_t first, std::int64_t last, int buffers);
  /// Ends the threads after the element that each of them is making.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;

  /// The next element; throws what making it threw.
  Tensors next();

 private:
  struct Slot {
    Tensors element;
    std::exception_ptr problem;
    bool full = false;
  };
  void start_thread();
  void produce();
  bool has_room() const;
  void note_size(const Tensors& element);
  void widen();
  void stop() noexcept;

  const StagePointer stage_;
  const std::int64_t epoch_, last_;
  const bool tunes_;

  std::mutex guard_;  // of all that follows
  std::condition_variable room_, ready_;
  std::deque<Slot> slots_;  // elements taken ... claimed - 1
  std::int64_t taken_;      // the index of the next element for the reader
  std::int64_t claimed_;    // of the next one that a thread will make
  std::int64_t buffers_;    // bound of slots_
  std::int64_t most_ = 0;   // bound of buffers_; 0: not known yet
  bool was_full_ = false;   // since buffers_ was widened
  int idle_ = 0;            // threads that wait for room
  bool waits_ = false;      // the reader
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gradus
