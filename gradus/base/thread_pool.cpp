#include "gradus/base/thread_pool.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include "gradus/base/cores.h"
#include "gradus/base/cpu_pause.h"
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/no_signals.h"
#include "gradus/base/notice.h"
#include "gradus/base/spin.h"

namespace gradus {
namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

/// How long a thread looks again before it sleeps: after a job, and within one.
constexpr std::chrono::microseconds spin_between_jobs{1000}, spin_within_job{50};
/// The same while called threads get no core: a spinning thread may keep it from the one that it waits for.
constexpr std::chrono::microseconds doubtful_between_jobs{200}, doubtful_within_job{20};
/// With more threads than cores another one wants its core.
constexpr std::chrono::microseconds spin_when_crowded{20};

constexpr double worth_waking_ns = 100'000;           // gained by one job
constexpr std::chrono::microseconds soon_again{200};  // a job after which the next one will come as soon
constexpr std::chrono::microseconds wakes_within{100};

thread_local bool in_job = false;
thread_local int at_most = ThreadPool::max_threads;  // of this thread
thread_local int device_of_thread = 0;               // logical device whose team it calls
struct JobScope {
  bool before = std::exchange(in_job, true);
  JobScope() = default;
  JobScope(const JobScope&) = delete;
  ~JobScope() { in_job = before; }
};
constinit std::atomic<bool> forked = false;  // a child process has no workers

int default_threads() {
  const char* given = std::getenv("GRADUS_NUM_THREADS");
  if (!given || !*given) return std::min(available_cores(), ThreadPool::max_threads);
  const std::string_view digits = given;
  int threads = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), threads);
  require(error == std::errc() && end == digits.data() + digits.size() && threads >= 1 &&
              threads <= ThreadPool::max_threads,
          "GRADUS_NUM_THREADS: expected a number of threads from 1 to ", ThreadPool::max_threads, ", given \"", digits,
          '"');
  return threads;
}

/// How long this thread has waited past its patience.
thread_local Nanoseconds waited_in_vain{0};

/// Numbers wrap around.
bool is_before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) {
  static_assert(sizeof word == sizeof value);
  syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

}  // namespace

// Without a fence between store and load, which would cost more than all the rest of a barrier (3 us of the 95 of a
// small training step), a thread that is just about to sleep may be missed: so it looks again after a while.
void Ticket::set(std::uint32_t number) {
  number_.store(number, std::memory_order_release);
  if (asleep_.load(std::memory_order_relaxed)) futex(number_, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

bool Ticket::comes_within(std::uint32_t wanted, Nanoseconds patience) {
  constexpr unsigned pauses_per_look = 64;  // at the clock: 1 to 3 us
  Clock::time_point start;
  for (unsigned pauses = 0; is_before(number_.load(std::memory_order_acquire), wanted);) {
    cpu_pause();
    if (++pauses % pauses_per_look != 0) continue;
    const auto now = Clock::now();
    if (pauses == pauses_per_look) start = now;
    if (now - start >= patience) return false;
  }
  return true;
}

void Ticket::wait_for(std::uint32_t wanted, Nanoseconds patience) {
  if (comes_within(wanted, patience)) return;
  const auto lost_from = Clock::now() - patience;
  while (!sleep_until(wanted) && !comes_within(wanted, patience)) {}
  waited_in_vain += Clock::now() - lost_from;
}

/// False if it was roused before.
bool Ticket::sleep_until(std::uint32_t wanted) {
  constexpr timespec soon{.tv_sec = 0, .tv_nsec = 2'000'000};
  const timespec* limit = &soon;
  roused_.store(false, std::memory_order_relaxed);
  asleep_.store(true, std::memory_order_seq_cst);
  bool is_there = false;
  for (std::uint32_t seen; !is_there; limit = nullptr) {
    is_there = !is_before(seen = number_.load(std::memory_order_acquire), wanted);
    if (is_there || roused_.load(std::memory_order_relaxed)) break;
    futex(number_, FUTEX_WAIT_PRIVATE, seen, limit);
  }
  asleep_.store(false, std::memory_order_relaxed);
  return is_there;
}

void Ticket::rouse() {
  roused_.store(true, std::memory_order_relaxed);
  futex(number_, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

/// Owned by the pool and by its workers: after set_num_threads the old workers leave in their own time.
struct ThreadPool::Team {
  explicit Team(int size) : begins(static_cast<std::size_t>(size)) {}

  struct alignas(64) Begin {
    Ticket ticket{true};     // its thread has yet to start
    std::uint32_t jobs = 0;  // that this worker was given: it may be left out of some
    /// Twice the number of the last job that it has come to, or of one that it was called off from, and 1. In a line of
    /// its own, which no other thread reads while all come.
    alignas(64) std::atomic<std::uint32_t> answer = 0;

    /// To the worker: true if it still has a part in this job.
    bool come(std::uint32_t job) { return give(2 * job); }
    bool has_come() const { return answer.load(std::memory_order_relaxed) == 2 * jobs; }
    /// To the caller: true if the worker has no part in its last job any more.
    bool call_off() { return give(2 * jobs + 1); }

   private:
    bool give(std::uint32_t wanted) {
      const std::uint32_t least = wanted & ~1U;
      std::uint32_t known = answer.load(std::memory_order_relaxed);
      while (is_before(known, least))
        if (answer.compare_exchange_weak(known, wanted, std::memory_order_relaxed)) return true;
      return false;
    }
  };
  std::vector<Begin> begins;  // by worker
  Job job;                    // no body: leave
  int size = 0;
  std::uint32_t jobs = 0;
  alignas(64) std::atomic<int> running = 0;
  Ticket ends;  // how many jobs all workers have left
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  std::vector<int> called_off;       // of the last job
  Clock::time_point missed, roused;  // when a thread that a job would have called slept, and was roused

  void start(Job next, int workers) {
    job = next;
    size = workers;
    called_off.clear();
    ++jobs;
    running.store(workers - 1, std::memory_order_relaxed);
    for (int w = 1; w < workers; ++w) {
      Begin& begin = begins[static_cast<std::size_t>(w)];
      begin.ticket.set(++begin.jobs);
    }
  }
  void run_part(int worker) noexcept {
    try {
      job.body(job.context, worker, size);
    } catch (...) {
      if (!failed.exchange(true, std::memory_order_relaxed)) failure = std::current_exception();
    }
  }
  void leave() {
    if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) ends.set(jobs);
  }
  void join() {
    if (size > 1) ends.wait_for(jobs, patience_within_job());
  }
  std::span<const int> call_off_absent(Nanoseconds patience) {
    const auto began = Clock::now();
    for (int w = 1; w < size; ++w) {
      Begin& begin = begins[static_cast<std::size_t>(w)];
      while (!begin.has_come() && Clock::now() - began < patience) cpu_pause();
      if (begin.has_come() || !begin.call_off()) continue;
      called_off.push_back(w);
      leave();
    }
    if (!called_off.empty()) waited_in_vain += Clock::now() - began;
    return called_off;
  }

  bool is_any_asleep(int workers) const {
    for (int w = 1; w < workers; ++w)
      if (begins[static_cast<std::size_t>(w)].ticket.is_asleep()) return true;
    return false;
  }
  /// For the next jobs, if they come soon, or if that is `expected`. True if it did anything.
  bool rouse(int workers, bool expected) {
    const auto now = Clock::now();
    const bool soon = now - std::exchange(missed, now) < soon_again;
    if ((!soon && !expected) || now - roused < wakes_within) return false;
    roused = now;
    for (int w = 1; w < workers; ++w)
      if (Ticket& ticket = begins[static_cast<std::size_t>(w)].ticket; ticket.is_asleep()) ticket.rouse();
    return true;
  }
};

OneThread::OneThread() : before_(at_most) { at_most = 1; }
OneThread::~OneThread() {
  if (!before_.give_back(at_most)) notice_end_elsewhere("a OneThread", "goes on computing alone");
}
ThreadPool::AtMost::AtMost(int threads) : before_(std::exchange(at_most, threads)) {}
ThreadPool::AtMost::~AtMost() { at_most = before_; }

int ThreadPool::threads() const { return std::min(at_most, threads_.load(std::memory_order_relaxed)); }
int ThreadPool::threads_for_short_work() const { return std::min(threads(), turnout_.threads()); }
void ThreadPool::did_short_work(double cost) { turnout_.did_without(cost); }

ThreadPool::ThreadPool() : threads_(default_threads()), turnout_(threads_) {
  crowded = threads_ > available_cores();
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

// Never destroyed, and its workers are detached: the destructors of other statics may compute, and nothing waits at the
// end of the process.
ThreadPool& ThreadPool::global() {
  alignas(ThreadPool) static std::byte storage[sizeof(ThreadPool)];
  static ThreadPool* const pool = new (storage) ThreadPool;
  if (device_of_thread == 0) [[likely]]
    return *pool;
  static std::array<std::atomic<ThreadPool*>, OnDevice::most> others;
  auto& other = others[static_cast<std::size_t>(device_of_thread)];
  if (ThreadPool* known = other.load(std::memory_order_acquire)) return *known;
  auto* const made = new ThreadPool;
  ThreadPool* expected = nullptr;
  if (other.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) return *made;
  delete made;  // it has no team yet
  return *expected;
}

ThreadPool::OnDevice::OnDevice(int index, int threads)
    : before_(std::exchange(device_of_thread, index)), share_(std::min(threads, at_most)) {}
ThreadPool::OnDevice::~OnDevice() { device_of_thread = before_; }

Nanoseconds ThreadPool::patience_between_jobs() {
  if (crowded.load(std::memory_order_relaxed)) return spin_when_crowded;
  return global().turnout_.is_good() ? spin_between_jobs : doubtful_between_jobs;
}
Nanoseconds ThreadPool::patience_within_job() {
  if (!global().turnout_.is_good()) return doubtful_within_job;
  return crowded.load(std::memory_order_relaxed) ? spin_when_crowded : spin_within_job;
}

void ThreadPool::run_alone(Job job) {
  const JobScope scope;
  const KernelFloats flush;
  job.body(job.context, 0, 1);
}

void ThreadPool::run_job(int want, Job job, const Absence& absence) {
  if (want <= 1 || threads() <= 1 || in_job || forked || busy_.exchange(true, std::memory_order_acquire))
    return run_alone(job);
  struct Release {
    std::atomic<bool>& busy;
    ~Release() { busy.store(false, std::memory_order_release); }
  } const release{busy_};
  // The first team may have been made where several computed side by side, of a share of the threads.
  if (const int all = threads(); !team_ || static_cast<int>(team_->begins.size()) < std::min(want, all)) resize(all);
  Team& team = *team_;
  const int size = std::min(want, static_cast<int>(team.begins.size()));
  if (absence.gain < worth_waking_ns && team.is_any_asleep(size)) {
    // In doubt they may wake on the caller's core and keep it while they look.
    const bool in_doubt = !turnout_.is_good(), roused = team.rouse(size, in_doubt);
    if (roused && in_doubt) turnout_.note(0, static_cast<double>(Nanoseconds(doubtful_between_jobs).count()));
    return run_alone(job);
  }
  const JobScope scope;
  const KernelFloats flush;
  waited_in_vain = Nanoseconds(0);
  team.start(job, size);
  team.run_part(0);
  if (absence.claims) team.call_off_absent(Nanoseconds(0));
  team.join();
  if (absence.gain < std::numeric_limits<double>::infinity())
    turnout_.note(team.called_off.empty() ? absence.gain : 0, static_cast<double>(waited_in_vain.count()));
  if (team.failed.load(std::memory_order_relaxed)) {
    team.failed.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(team.failure, nullptr));
  }
}

bool ThreadPool::others_leave_shortly() { return team_->ends.comes_within(team_->jobs, Nanoseconds(0)); }
std::span<const int> ThreadPool::call_off_absent(Nanoseconds patience) { return team_->call_off_absent(patience); }

/// Called with busy_ set.
void ThreadPool::resize(int threads) {
  auto team = std::make_shared<Team>(threads);
  const NoSignals no_signals;
  int started = 1;
  try {
    for (; started < threads; ++started)
      std::thread([team, worker = started] {
        char name[16] = "gradus-";  // without the heap: an error of a thread here ends the process
        *std::to_chars(name + 7, std::end(name) - 1, worker).ptr = '\0';
        pthread_setname_np(pthread_self(), name);
        work(team, worker);
      }).detach();
  } catch (const std::system_error& error) {
    team->start({}, started);
    throw ResourceExhausted(text("fewer threads than wanted: the system starts ", started, " of ", threads, " (",
                                 error.what(),
                                 "), as limits such as ulimit -u and a container's pids.max make it; ask "
                                 "for at most ",
                                 started, " with set_num_threads, GRADUS_NUM_THREADS or --threads"));
  }
  dismiss();
  team_ = std::move(team);
}

/// Called with busy_ set.
void ThreadPool::dismiss() {
  if (team_) team_->start({}, static_cast<int>(team_->begins.size()));
  team_ = nullptr;
}

void ThreadPool::work(const std::shared_ptr<Team>& team, int worker) {
  use_cores_of_process();
  const KernelFloats flush;
  in_job = true;  // whatever a worker computes is part of a job
  Team::Begin& begin = team->begins[static_cast<std::size_t>(worker)];
  begin.ticket.looks();
  for (std::uint32_t job = 1;; ++job) {
    begin.ticket.wait_for(job, patience_between_jobs());
    if (!begin.come(job)) continue;
    if (!team->job.body) return;
    team->run_part(worker);
    team->leave();
  }
}

void set_num_threads(int n) {
  require(n >= 1 && n <= ThreadPool::max_threads, "set_num_threads: expected a number of threads from 1 to ",
          ThreadPool::max_threads, ", given ", n);
  require(!in_job, "set_num_threads: cannot be called inside a running program");
  require(at_most > 1, "set_num_threads: cannot be called where several threads compute side by side");
  ThreadPool& pool = ThreadPool::global();
  for (Spin spin; !forked && pool.busy_.exchange(true, std::memory_order_acquire);) spin.pause();
  if (n != pool.threads_) {
    pool.dismiss();
    pool.threads_ = n;
    pool.turnout_.reset(n);
    crowded = n > available_cores();
  }
  pool.busy_.store(false, std::memory_order_release);
}

TeamBarrier::TeamBarrier(int team_size) : seats_(static_cast<std::size_t>(team_size)) {}

void TeamBarrier::wait(std::span<const int> workers) {
  const auto size = seats_.size();
  const auto seat_of = [&](int worker) { return static_cast<std::size_t>(worker); };
  for (const int w : workers) ++seats_[seat_of(w)].meetings;
  int round = 0;
  for (std::size_t distance = 1; distance < size; distance *= 2, ++round) {
    for (const int w : workers) seats_[(seat_of(w) + distance) % size].heard[round].set(seats_[seat_of(w)].meetings);
    for (const int w : workers) {  // a partner may be at the next meeting already
      Seat& seat = seats_[seat_of(w)];
      seat.heard[round].wait_for(seat.meetings, ThreadPool::patience_within_job());
    }
  }
}

bool TeamBarrier::wait_shortly(int worker) {
  const auto size = seats_.size(), self = static_cast<std::size_t>(worker);
  Seat& seat = seats_[self];
  int round = 0;
  for (std::size_t distance = 1; distance < size; distance *= 2, ++round) {
    seats_[(self + distance) % size].heard[round].set(seat.meetings + 1);
    if (!seat.heard[round].comes_within(seat.meetings + 1, Nanoseconds(0))) return false;
  }
  ++seat.meetings;
  return true;
}

void TeamBarrier::await_turn(int worker) {
  if (worker == 0) return;
  const auto self = static_cast<std::size_t>(worker);
  seats_[self - 1].ended.wait_for(++seats_[self].awaited, ThreadPool::patience_within_job());
}

void TeamBarrier::end_turn(int worker) {
  Seat& seat = seats_[static_cast<std::size_t>(worker)];
  seat.ended.set(++seat.turns);
}

int num_threads() { return ThreadPool::global().threads(); }

}  // namespace gradus
