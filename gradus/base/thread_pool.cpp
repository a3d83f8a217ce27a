#include "gradus/base/thread_pool.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
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

constexpr std::chrono::microseconds spin_between_jobs{1000};
constexpr std::chrono::microseconds spin_within_job{50};
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

/// How long a thread looks again before it sleeps. With more threads than cores another one wants its core.
std::chrono::nanoseconds patience(std::chrono::microseconds alone) {
  return crowded.load(std::memory_order_relaxed) ? spin_when_crowded : alone;
}

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

void Ticket::wait_for(std::uint32_t wanted, std::chrono::nanoseconds patience) {
  constexpr unsigned pauses_per_look = 64;  // at the clock: 1 to 3 us
  using Clock = std::chrono::steady_clock;
  Clock::time_point start;
  for (unsigned pauses = 0; is_before(number_.load(std::memory_order_acquire), wanted);) {
    _mm_pause();
    if (++pauses % pauses_per_look != 0) continue;
    const auto now = Clock::now();
    if (pauses == pauses_per_look) start = now;
    if (now - start >= patience) return sleep_until(wanted);
  }
}

void Ticket::sleep_until(std::uint32_t wanted) {
  constexpr timespec soon{.tv_sec = 0, .tv_nsec = 2'000'000};
  const timespec* limit = &soon;
  asleep_.store(true, std::memory_order_seq_cst);
  for (std::uint32_t seen; is_before(seen = number_.load(std::memory_order_acquire), wanted); limit = nullptr)
    futex(number_, FUTEX_WAIT_PRIVATE, seen, limit);
  asleep_.store(false, std::memory_order_relaxed);
}

/// Owned by the pool and by its workers: after set_num_threads the old workers leave in their own time.
struct ThreadPool::Team {
  explicit Team(int size) : begins(static_cast<std::size_t>(size)) {}

  struct alignas(64) Begin {
    Ticket ticket;
    std::uint32_t jobs = 0;  // that this worker was given: it may be left out of some
  };
  std::vector<Begin> begins;  // by worker
  Job job;                    // no body: leave
  int size = 0;
  std::uint32_t jobs = 0;
  alignas(64) std::atomic<int> running = 0;
  Ticket ends;  // how many jobs all workers have left
  std::atomic<bool> failed = false;
  std::exception_ptr failure;

  void start(Job next, int workers) {
    job = next;
    size = workers;
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
    if (size > 1) ends.wait_for(jobs, patience(spin_within_job));
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
  team.start(job, std::min(want, static_cast<int>(team.begins.size())));
  team.run_part(0);
  team.join();
  if (team.failed.load(std::memory_order_relaxed)) {
    team.failed.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(team.failure, nullptr));
  }
}

/// Called with busy_ set.
void ThreadPool::resize(int threads) {
  auto team = std::make_shared<Team>(threads);
  const NoSignals no_signals;
  int started = 1;
  try {
    for (; started < threads; ++started)
      std::thread([team, worker = started] {
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
  for (std::uint32_t job = 1;; ++job) {
    team->begins[static_cast<std::size_t>(worker)].ticket.wait_for(job, patience(spin_between_jobs));
    if (!team->job.body) return;
    team->run_part(worker);
    team->leave();
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
    if (pool.team_) pool.team_->start({}, static_cast<int>(pool.team_->begins.size()));
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
    seats_[(self + distance) % size].heard[round].set(meeting);
    seats_[self].heard[round].wait_for(meeting, patience(spin_within_job));  // a partner may be at the next one already
  }
}

void Barrier::await_turn(int worker) {
  if (worker == 0) return;
  const auto self = static_cast<std::size_t>(worker);
  seats_[self - 1].ended.wait_for(++seats_[self].awaited, patience(spin_within_job));
}

void Barrier::end_turn(int worker) {
  Seat& seat = seats_[static_cast<std::size_t>(worker)];
  seat.ended.set(++seat.turns);
}

int num_threads() { return ThreadPool::global().threads(); }

}  // namespace gradus
