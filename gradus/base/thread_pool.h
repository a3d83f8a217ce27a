/// One team of workers for the whole process. A job forks once and may meet at barriers. Whoever waits looks again for
/// a while, then sleeps: workers after a job for about a millisecond, within one for less.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>
#include "gradus/base/threads.h"

namespace gradus {

class ThreadPool {
 public:
  static ThreadPool& global();
  static constexpr int max_threads = 1024;

  /// Those of the team; 1 within OneThread.
  int threads() const;

  /// Runs body(worker, team_size) on min(want, threads()) workers, the caller being worker 0, and returns when all are
  /// done. While the team is busy with another caller's job, and inside a job, body(0, 1) runs alone on the caller: it
  /// never waits for another job. Subnormals are flushed in every worker. The first exception is thrown again here; a
  /// body that meets at a barrier must not throw, since the others would wait for it.
  template <class Body> void run(int want, Body&& body) {
    run_job(want, {[](void* context, int worker, int team_size) {
                     (*static_cast<std::remove_reference_t<Body>*>(context))(worker, team_size);
                   },
                   const_cast<void*>(static_cast<const void*>(std::addressof(body)))});
  }

 private:
  struct Job {
    void (*body)(void* context, int worker, int team_size) = nullptr;
    void* context = nullptr;
  };
  struct Team;
  friend void set_num_threads(int n);

  ThreadPool();
  void run_job(int want, Job job);
  void resize(int threads);
  static void run_alone(Job job);
  static void work(const std::shared_ptr<Team>& team, int worker);

  std::atomic<int> threads_;
  alignas(64) std::atomic<bool> busy_ = false;
  std::shared_ptr<Team> team_;  // of whoever has set busy_; made by the first job
};

/// A number that one thread sets and one other waits for. A waiting thread sleeps after a while, rather than yield its
/// core: beside another busy process it would get that back after a whole slice of time, but is woken at once.
class Ticket {
 public:
  void set(std::uint32_t number);
  /// Returns when the number is `wanted` or later (numbers wrap around); `patience`: how long it looks before it
  /// sleeps.
  void wait_for(std::uint32_t wanted, std::chrono::nanoseconds patience);

 private:
  void sleep_until(std::uint32_t wanted);
  std::atomic<std::uint32_t> number_ = 0;
  std::atomic<bool> asleep_ = false;
};

/// Where the workers of one job wait for each other: what any of them wrote before is seen by all after. A
/// dissemination barrier: no counter that all write to, log2(team size) rounds, with two workers one message each way.
class Barrier {
 public:
  explicit Barrier(int team_size);
  void wait(int worker);

  // Turns: each worker of the team calls both as often as the others, in the same order.
  /// Returns when the worker before this one has ended its turn as often as this one has awaited it; for worker 0 at
  /// once. What that one wrote before is seen.
  void await_turn(int worker);
  void end_turn(int worker);

 private:
  struct alignas(64) Seat {
    Ticket heard[10];            // by round: the last meeting that the partner has reached
    std::uint32_t meetings = 0;  // of this worker
    std::uint32_t awaited = 0, turns = 0;
    alignas(64) Ticket ended;  // turns of this worker, which the next one looks at
  };
  std::vector<Seat> seats_;
};

}  // namespace gradus
