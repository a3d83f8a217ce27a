#include "gradus/base/thread_pool.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include "gradus/base/error.h"
#include "gradus/base/flush_denormals.h"
#include "gradus/base/no_signals.h"
#include "gradus/base/spin.h"

namespace gradus {
namespace {

constexpr std::chrono::microseconds spin_before_sleep{1000};
constexpr std::chrono::microseconds spin_when_crowded{20};

thread_local bool in_job = false;
thread_local bool computes_alone = false;
struct JobScope {
  bool before = std::exchange(in_job, true);
  JobScope() = default;
  JobScope(const JobScope&) = delete;
  ~JobScope() { in_job = before; }
};
constinit std::atomic<bool> forked = false;  // a child process has no workers

/// The cores that the process may use.
std::vector<int> available_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(getpid(), sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // best effort: unpinned is slower, not wrong
}

int default_threads() {
  const char* given = std::getenv("GRADUS_NUM_THREADS");
  if (!given || !*given) return std::min(static_cast<int>(available_cores().size()), ThreadPool::max_threads);
  const std::string_view digits = given;
  int threads = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), threads);
  require(error == std::errc() && end == digits.data() + digits.size() && threads >= 1 &&
              threads <= ThreadPool::max_threads,
          "GRADUS_NUM_THREADS: expected a number of threads from 1 to ", ThreadPool::max_threads, ", given \"", digits,
          '"');
  return threads;
}

/// A number that one thread raises and one other waits for.
struct alignas(64) Ticket {
  std::atomic<std::uint32_t> number = 0;
  std::atomic<bool> asleep = false;

  void raise() {
    number.fetch_add(1, std::memory_order_seq_cst);
    if (asleep.load(std::memory_order_seq_cst)) syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  void wait_past(std::uint32_t seen) {
    const auto patience = crowded.load(std::memory_order_relaxed) ? spin_when_crowded : spin_before_sleep;
    for (Spin spin; number.load(std::memory_order_acquire) == seen; spin.pause())
      if (spin.waited() > patience) return sleep_past(seen);
  }
  void sleep_past(std::uint32_t seen) {
    asleep.store(true, std::memory_order_seq_cst);
    while (number.load(std::memory_order_seq_cst) == seen)
      syscall(SYS_futex, &number, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    asleep.store(false, std::memory_order_relaxed);
  }
};

}  // namespace

/// Owned by the pool and by its workers: after set_num_threads the old workers leave in their own time.
struct ThreadPool::Team {
  explicit Team(int size) : tickets(static_cast<std::size_t>(size)) {}

  std::vector<Ticket> tickets;  // by worker
  Job job;                      // no body: leave
  int size = 0;
  alignas(64) std::atomic<int> running = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr failure;

  void start(Job next, int workers) {
    job = next;
    size = workers;
    running.store(workers - 1, std::memory_order_relaxed);
    for (int w = 1; w < workers; ++w) tickets[static_cast<std::size_t>(w)].raise();
  }
  void run_part(int worker) noexcept {
    try {
      job.body(job.context, worker, size);
    } catch (...) {
      if (!failed.exchange(true, std::memory_order_relaxed)) failure = std::current_exception();
    }
  }
  void join() {
    for (Spin spin; running.load(std::memory_order_acquire) > 0;) spin.pause();
  }
};

OneThread::OneThread() : before_(std::exchange(computes_alone, true)) {}
OneThread::~OneThread() { computes_alone = before_; }

int ThreadPool::threads() const { return computes_alone ? 1 : threads_.load(std::memory_order_relaxed); }

ThreadPool::ThreadPool() : threads_(default_threads()) {
  crowded = threads_ > static_cast<int>(available_cores().size());
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

// Never destroyed, and its workers are detached: the destructors of anybody's statics may compute, and nothing waits at
// the end of the process.
ThreadPool& ThreadPool::global() {
  alignas(ThreadPool) static std::byte storage[sizeof(ThreadPool)];
  static ThreadPool* const pool = new (storage) ThreadPool;
  return *pool;
}

void ThreadPool::run_alone(Job job) {
  const JobScope scope;
  const FlushDenormals flush;
  job.body(job.context, 0, 1);
}

void ThreadPool::run_job(int want, Job job) {
  if (want <= 1 || threads() <= 1 || in_job || forked || busy_.exchange(true, std::memory_order_acquire))
    return run_alone(job);
  struct Release {
    std::atomic<bool>& busy;
    ~Release() { busy.store(false, std::memory_order_release); }
  } const release{busy_};
  const JobScope scope;
  if (!team_) resize(threads());
  Team& team = *team_;
  const FlushDenormals flush;
  team.start(job, std::min(want, static_cast<int>(team.tickets.size())));
  team.run_part(0);
  team.join();
  if (team.failed.load(std::memory_order_relaxed)) {
    team.failed.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(team.failure, nullptr));
  }
}

/// Called with busy_ set.
void ThreadPool::resize(int threads) {
  const std::vector<int> cores = available_cores();
  auto team = std::make_shared<Team>(threads);
  const NoSignals no_signals;
  int started = 1;
  try {
    for (; started < threads; ++started)
      std::thread([team, worker = started,
                   core = threads <= static_cast<int>(cores.size()) ? cores[static_cast<std::size_t>(started)] : -1] {
        if (core >= 0) pin_to(core);
        pthread_setname_np(pthread_self(), text("gradus-", worker).c_str());
        work(team, worker);
      }).detach();
  } catch (const std::system_error& error) {
    team->start({}, started);
    throw ResourceExhausted(text("the system refuses to start thread ", started + 1, " of ", threads, ": ",
                                 error.what(), "; ask for fewer with set_num_threads or GRADUS_NUM_THREADS"));
  }
  team_ = std::move(team);
}

void ThreadPool::work(const std::shared_ptr<Team>& team, int worker) {
  const FlushDenormals flush;
  in_job = true;  // whatever a worker computes is part of a job
  for (std::uint32_t seen = 0;; ++seen) {
    team->tickets[static_cast<std::size_t>(worker)].wait_past(seen);
    if (!team->job.body) return;
    team->run_part(worker);
    team->running.fetch_sub(1, std::memory_order_release);
  }
}

void set_num_threads(int n) {
  require(n >= 1 && n <= ThreadPool::max_threads, "set_num_threads: expected a number of threads from 1 to ",
          ThreadPool::max_threads, ", given ", n);
  require(!in_job, "set_num_threads: cannot be called inside a running program");
  require(!computes_alone, "set_num_threads: cannot be called where several threads compute side by side");
  ThreadPool& pool = ThreadPool::global();
  for (Spin spin; !forked && pool.busy_.exchange(true, std::memory_order_acquire);) spin.pause();
  if (n != pool.threads_) {
    if (pool.team_) pool.team_->start({}, static_cast<int>(pool.team_->tickets.size()));
    pool.team_ = nullptr;
    pool.threads_ = n;
    crowded = n > static_cast<int>(available_cores().size());
  }
  pool.busy_.store(false, std::memory_order_release);
}

Barrier::Barrier(int team_size) : seats_(static_cast<std::size_t>(team_size)) {}

void Barrier::wait(int worker) {
  const auto size = seats_.size(), self = static_cast<std::size_t>(worker);
  const std::uint32_t meeting = ++seats_[self].meetings;
  int round = 0;
  for (std::size_t distance = 1; distance < size; distance *= 2, ++round) {
    seats_[(self + distance) % size].heard[round].store(meeting, std::memory_order_release);
    const std::atomic<std::uint32_t>& heard = seats_[self].heard[round];
    // A partner may already be at the next meeting.
    for (Spin spin; static_cast<std::int32_t>(heard.load(std::memory_order_acquire) - meeting) < 0;) spin.pause();
  }
}

int num_threads() { return ThreadPool::global().threads(); }

}  // namespace gradus
