/// Lazy evaluation. Nodes that a thread records outside of traces wait in its queue; observing a value computes all of
/// the queue as one program. Reference counts decide what the program yields: nodes held from outside the queue. A leaf
/// held by nothing but the queue dies with it, so its memory may be overwritten.
///
/// Locks: a queue's guard is held while it is changed or flushed, the latter for long; nothing else is locked inside it
/// but variable cells and caches. Nodes are released only after it is unlocked, because their death takes it.
#pragma once
#include <atomic>
#include <memory>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/base/short_lock.h"
#include "gradus/function/synchronize.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/call_context.h"

namespace gradus {

struct QueueRegistry;

namespace detail::inline rooms {

class Pending {
 public:
  /// The first queue of this thread, which has the state of all of them: recording, its number.
  static Pending& mine();
  /// Its queue for `device`: each device has its own programs.
  static Pending& mine(Placement device);
  /// Computes the queues of this thread.
  static void flush_mine();
  /// Computes the queues of all threads.
  static void flush_all();
  /// Computes the queues in which an assignment of `cell` waits.
  static void flush_assigning(const VariableCell& cell);

  void record(const Ref<Node>& node);
  /// Lets a node wait that no queue has, since its flush failed.
  void record_again(const Ref<Node>& node);
  void forget(Node& node);
  /// Computes all nodes that wait here. Throws the program's error; then no assignment has happened.
  void flush();
  /// `cell` holds a value that waits here.
  void add_assignment(std::shared_ptr<VariableCell> cell);
  void start_recording();
  void stop_recording();
  /// While all recordings are paused, what was recorded keeps its history, and what is made now has none.
  void pause_recording();
  void resume_recording();

  bool is_recording() const { return recording_ > paused_; }  // asked by the owner only

  /// A running thread, identified by its queue.
  struct Thread {
    Thread() : queue(mine()), life(queue.life_) {}
    Pending& queue;
    const std::uint64_t life;
  };
  /// Destroys a listener that belongs to `thread`: at once on that thread, or if the thread has ended; otherwise that
  /// thread destroys it at its next op or reading of a Variable.
  static void destroy(std::unique_ptr<ReadListener> listener, const Thread& thread);
  /// True if `thread` is the calling one.
  static bool is_mine(const Thread& thread) { return &mine() == &thread.queue && thread.queue.life_ == thread.life; }
  /// Destroys the listeners of this thread that other threads have released.
  void destroy_abandoned() {
    if (has_abandoned_.load(std::memory_order_acquire)) [[unlikely]]
      take_abandoned();
  }
  /// That of the thread, whichever of its queues is asked.
  std::uint32_t number() const { return first_->number_; }
  /// Ops that wait in the queues of this thread and are younger than this number of a node.
  static std::int64_t waiting_since(std::uint64_t sequence);
  /// Ops that this thread has recorded.
  std::int64_t recorded() const { return first_->recorded_; }
  /// Programs that this thread has started.
  std::int64_t& dispatches() { return dispatches_; }
  /// While set, every op is computed at once.
  bool& eager() { return eager_; }

 private:
  friend QueueRegistry;
  struct Plan;
  void plan(Plan& plan);
  void run(Plan& plan);
  void commit(Plan& plan);
  void abandon(Plan& plan);
  void settle(std::vector<Ref<Node>>& released);
  /// True if a computed node keeps its operands, as a gradient may be asked.
  bool keeps_history(const Node& node) const {
    return recording_ > 0 && (is_recording() || node.sequence < paused_since_);
  }
  static std::vector<Pending*> all();
  bool assigns(const VariableCell& cell);
  void orphan();
  void adopt(Placement device, Pending* first);
  Ref<Node> admit(const Ref<Node>& node);
  void admit_with_history(const Ref<Node>& node);
  void close_ranks();
  void take_abandoned();
  void copy_now(const Ref<Node>& node);

  ShortLock guard_;
  std::vector<Node*> nodes_;  // in the order of recording; null: has died
  std::vector<std::shared_ptr<VariableCell>> assigned_;
  std::vector<Ref<Node>> kept_;  // computed, but with their history, which ends with the recording
  std::uint32_t number_ = 0;     // of the queue
  Pending* first_ = this;        // the first queue of its thread
  Placement device_;             // named: whose programs it runs
  bool has_owner_ = true;        // a thread that runs
  int recording_ = 0, paused_ = 0;
  std::uint64_t paused_since_ = 0;  // number of a node, where all recordings are paused
  std::int64_t dispatches_ = 0, recorded_ = 0;
  bool eager_ = false;
  std::uint64_t life_ = 0;  // counts the threads that have owned the queue
  std::vector<std::unique_ptr<ReadListener>> abandoned_;
  std::atomic<bool> has_abandoned_ = false;
};

}  // namespace detail::inline rooms

/// In its lifetime this thread computes as another one would: outside of every call and every DeviceScope, and with
/// queues of its own. So its computations are part of no trace and no recording around.
class Apart {
 public:
  [[nodiscard]] Apart();
  ~Apart();

 private:
  const OutsideOfCalls outside_;
  const DeviceScope nowhere_{Placement()};
  struct Queues;
  const std::unique_ptr<Queues> queues_;
};

}  // namespace gradus
