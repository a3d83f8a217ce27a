/// One team of workers for the whole process. A job forks once and may meet at barriers. A waiting worker polls for a
/// while, then sleeps: after a job for about a millisecond, within one for less. A worker that does not come is not
/// waited for: the caller does its part.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/base/threads.h"
#include "gradus/base/turnout.h"

namespace gradus {

class ThreadPool {
 public:
  /// The team of the logical device that this thread computes for: the process's, unless within OnDevice.
  static ThreadPool& global();
  static constexpr int max_threads = 1024;

  /// Number of threads of the team; 1 within OneThread.
  int threads() const;
  /// Number of threads worth calling for short work now: fewer while the called ones get no core.
  int threads_for_short_work() const;
  /// Reports short work of `cost` nanoseconds that was done with at most threads_for_short_work() threads.
  void did_short_work(double cost);

  /// While it lives, this thread uses at most `threads` threads.
  class AtMost {
   public:
    [[nodiscard]] explicit AtMost(int threads);
    ~AtMost();
    AtMost(const AtMost&) = delete;

   private:
    const int before_;
  };

  /// While it lives, this thread computes for logical device `index`, with a team of so many at most that is no other
  /// device's. 0 is the team of the process.
  class OnDevice {
   public:
    static constexpr int most = 63;
    [[nodiscard]] OnDevice(int index, int threads);
    ~OnDevice();
    OnDevice(const OnDevice&) = delete;

   private:
    const int before_;
    const AtMost share_;
  };

  /// Rules for a job whose workers do not come.
  struct Absence {
    /// Nanoseconds that a whole team gains over the caller alone. If that is little, sleeping workers are not woken for
    /// one job, and late ones are not waited for. The cost of waits in such jobs decides how many are called.
    double gain = std::numeric_limits<double>::infinity();
    /// The body claims piece after piece until none is left, so it does not need workers that have not come by the end
    /// of it.
    bool claims = false;
  };

  /// Runs body(worker, team_size) on min(want, threads()) workers, with the caller as worker 0, and returns when all
  /// are done. While the team is busy with another caller's job, and inside a job, body(0, 1) runs alone on the caller:
  /// it never waits for another job. Subnormals are flushed in every worker. The first exception is rethrown here. A
  /// body that meets at a barrier must not throw, since the others would wait for it.
  template <class Body> void run(int want, Body&& body) { run(want, std::forward<Body>(body), Absence()); }
  template <class Body> void run(int want, Body&& body, const Absence& absence) {
    run_job(want,
            {[](void* context, int worker, int team_size) {
               (*static_cast<std::remove_reference_t<Body>*>(context))(worker, team_size);
             },
             const_cast<void*>(static_cast<const void*>(std::addressof(body)))},
            absence);
  }

  // For worker 0, within a job.
  /// True if all others have left the job, or will in a moment.
  bool others_leave_shortly();
  /// Excludes the workers that have not begun, and do not within `patience`, from this job, and returns them. The
  /// caller does their part.
  std::span<const int> call_off_absent(std::chrono::nanoseconds patience);

 private:
  struct Job {
    void (*body)(void* context, int worker, int team_size) = nullptr;
    void* context = nullptr;
  };
  struct Team;
  friend void set_num_threads(int n);
  friend class TeamBarrier;

  ThreadPool();
  void run_job(int want, Job job, const Absence& absence);
  void resize(int threads);
  void dismiss();
  static std::chrono::nanoseconds patience_between_jobs();
  static std::chrono::nanoseconds patience_within_job();
  static void run_alone(Job job);
  static void work(const std::shared_ptr<Team>& team, int worker);

  std::atomic<int> threads_;
  Turnout turnout_;
  alignas(64) std::atomic<bool> busy_ = false;
  std::shared_ptr<Team> team_;  // for the caller that has set busy_; made by the first job
};

/// A number that one thread sets and another one waits for. A waiting thread sleeps after a while, instead of yielding
/// its core: beside another busy process it would get that back only after a whole time slice. A sleeping one is woken
/// at once.
class Ticket {
 public:
  /// `asleep`: the waiting thread does not poll until it calls looks().
  explicit Ticket(bool asleep = false) : asleep_(asleep) {}
  void looks() { asleep_.store(false, std::memory_order_relaxed); }
  void set(std::uint32_t number);
  /// Returns when the number is `wanted` or later (numbers wrap around). `patience`: time of polling before it sleeps.
  void wait_for(std::uint32_t wanted, std::chrono::nanoseconds patience);
  /// True if the number is `wanted` or later, or becomes so within `patience`.
  bool comes_within(std::uint32_t wanted, std::chrono::nanoseconds patience);

  bool is_asleep() const { return asleep_.load(std::memory_order_relaxed); }
  /// Lets a sleeping thread poll again for a while.
  void rouse();

 private:
  bool sleep_until(std::uint32_t wanted);
  std::atomic<std::uint32_t> number_ = 0;
  std::atomic<bool> asleep_, roused_ = false;
};

/// A barrier for the workers of one job: everything that any of them wrote before is seen by all after. A dissemination
/// barrier: no counter that all write to, but log2(team size) rounds; with two workers one message each way.
class TeamBarrier {
 public:
  explicit TeamBarrier(int team_size);
  void wait(int worker) { wait(std::span(&worker, 1)); }
  /// Waits for one thread that stands for several workers.
  void wait(std::span<const int> workers);
  /// True if all have arrived or come in a moment. If not, the worker has to wait at the same meeting again.
  bool wait_shortly(int worker);

  // Turns: each worker of the team calls both equally often, in the same order.
  /// Returns when the worker before this one has ended its turn as often as this one has awaited it; for worker 0 at
  /// once. Everything that the other worker wrote before is seen.
  void await_turn(int worker);
  void end_turn(int worker);

 private:
  struct alignas(64) Seat {
    Ticket heard[10];            // by round: the last meeting that the partner has reached
    std::uint32_t meetings = 0;  // of this worker
    std::uint32_t awaited = 0, turns = 0;
    alignas(64) Ticket ended;  // turns of this worker, which the next one waits for
  };
  std::vector<Seat> seats_;
};

}  // namespace gradus
