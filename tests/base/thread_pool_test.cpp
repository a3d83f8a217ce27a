/// The pool: every worker once, any number of threads, several callers, nesting, exceptions, sleeping, barriers, modes.
#include "gradus/base/cores.h"
#include "gradus/base/thread_pool.h"
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "tests/new_process.h"
#include "tests/stopped_workers.h"

namespace gradus::thread_pool_test {
namespace {

ThreadPool& pool() { return ThreadPool::global(); }

bool flushes() {
  volatile float least = std::numeric_limits<float>::min();
  return least / 2 == 0;
}

int threads_allowed() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

class ThreadPoolTest : public testing::TestWithParam<int> {
 protected:
  ThreadPoolTest() { set_num_threads(GetParam()); }
};

TEST_P(ThreadPoolTest, RunsEachWorkerOnce) {
  EXPECT_EQ(pool().threads(), GetParam());
  for (int want = 1; want <= GetParam() + 2; ++want)
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(GetParam()));
      std::atomic<int> wrong_size = 0;
      const int expected = std::min(want, GetParam());
      pool().run(want, [&](int worker, int team_size) {
        ++calls[static_cast<std::size_t>(worker)];
        wrong_size += team_size != expected;
      });
      EXPECT_EQ(wrong_size, 0);
      for (int w = 0; w < GetParam(); ++w)
        ASSERT_EQ(calls[static_cast<std::size_t>(w)], w < expected) << w << " of " << want;
    }
}

TEST_P(ThreadPoolTest, TheCallerIsWorkerZero) {
  const auto caller = std::this_thread::get_id();
  pool().run(GetParam(), [&](int worker, int) { EXPECT_EQ(std::this_thread::get_id() == caller, worker == 0); });
}

/// Each phase reads what all workers wrote in the phase before.
TEST_P(ThreadPoolTest, BarriersSeparatePhases) {
  constexpr int phases = 300;
  const int size = GetParam();
  TeamBarrier barrier(size);
  std::vector<int> cells(static_cast<std::size_t>(size), 0);
  std::atomic<int> wrong = 0;
  for (int job = 0; job < 3; ++job) {
    pool().run(size, [&](int worker, int team_size) {
      ASSERT_EQ(team_size, size);
      for (int phase = 1; phase <= phases; ++phase) {
        cells[static_cast<std::size_t>(worker)] = job * phases + phase;
        barrier.wait(worker);
        for (const int cell : cells) wrong += cell != job * phases + phase;
        barrier.wait(worker);
      }
    });
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPoolTest, AnExceptionReachesTheCaller) {
  for (int thrower = 0; thrower < GetParam(); ++thrower) {
    const auto throwing = [&](int worker, int) {
      if (worker == thrower) throw std::runtime_error("worker " + std::to_string(worker));
    };
    try {
      pool().run(GetParam(), throwing);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) { EXPECT_EQ(error.what(), "worker " + std::to_string(thrower)); }
    EXPECT_NO_THROW(pool().run(GetParam(), [](int, int) {})) << "an old failure came again";
  }
  EXPECT_THROW(pool().run(GetParam(), [](int, int) { throw std::logic_error("all"); }), std::logic_error);
}

TEST_P(ThreadPoolTest, AJobWithinAJobRunsAlone) {
  std::atomic<int> inner = 0, wrong = 0;
  pool().run(GetParam(), [&](int, int) {
    pool().run(GetParam(), [&](int worker, int team_size) {
      ++inner;
      wrong += worker != 0 || team_size != 1;
    });
  });
  EXPECT_EQ(inner, GetParam());
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPoolTest, SeveralCallersAtOnce) {
  constexpr int callers = 4, jobs = 500;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> users;
  for (int u = 0; u < callers; ++u)
    users.emplace_back([&] {
      for (int job = 0; job < jobs; ++job) {
        std::atomic<int> parts = 0;
        int size = 0;
        pool().run(GetParam(), [&](int worker, int team_size) {
          ++parts;
          if (worker == 0) size = team_size;
        });
        wrong += parts != size || (size != 1 && size != GetParam());
      }
    });
  for (auto& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPoolTest, ResizingWhileOthersRun) {
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::thread user([&] {
    while (!stop) {
      std::atomic<int> parts = 0;
      int size = 0;
      pool().run(ThreadPool::max_threads, [&](int worker, int team_size) {
        ++parts;
        if (worker == 0) size = team_size;
      });
      wrong += parts != size;
    }
  });
  for (int i = 0; i < 20; ++i) {
    set_num_threads(1 + i % 4);
    pool().run(4, [](int, int) {});
  }
  stop = true;
  user.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(ThreadPoolTest, SleepingWorkersWake) {
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> parts = 0;
    pool().run(GetParam(), [&](int, int) { ++parts; });
    EXPECT_EQ(parts, GetParam());
  }
}

TEST_P(ThreadPoolTest, SubnormalsAreFlushedInJobsOnly) {
  EXPECT_FALSE(flushes());
  std::atomic<int> kept = 0;
  pool().run(GetParam(), [&](int, int) { kept += !flushes(); });
  pool().run(1, [&](int, int) { kept += !flushes(); });
  EXPECT_EQ(kept, 0);
  EXPECT_FALSE(flushes());
}

TEST_P(ThreadPoolTest, UsersThreadsAreNotPinned) {
  const int before = threads_allowed();
  int after = 0;
  pool().run(GetParam(), [](int, int) {});
  std::thread([&] { after = threads_allowed(); }).join();
  EXPECT_EQ(after, before);
  EXPECT_EQ(threads_allowed(), before);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8), testing::PrintToStringParamName());

TEST(ThreadCountTest, BadNumbersAreRefused) {
  const int before = pool().threads();
  for (const int n : {0, -1, 1025, std::numeric_limits<int>::min()})
    EXPECT_THROW(set_num_threads(n), InvalidArgument) << n;
  EXPECT_EQ(pool().threads(), before);
}

TEST(ThreadCountTest, IsNotChangedFromWithinAJob) {
  set_num_threads(2);
  pool().run(2, [](int, int) { EXPECT_THROW(set_num_threads(3), InvalidArgument); });
  EXPECT_EQ(pool().threads(), 2);
}

/// With no patience every wait is a sleep, which a number that is set in the meantime ends.
/// A job that may have a share of the threads comes first, as where devices compute side by side.
TEST(TeamTest, GrowsPastTheShareOfItsFirstJob) {
  const auto team_for = [](int want) {
    std::atomic<int> size = 0;
    pool().run(want, [&](int, int team_size) { size = team_size; });
    return size.load();
  };
  set_num_threads(3);
  set_num_threads(4);  // without a team
  {
    const ThreadPool::AtMost share(2);
    EXPECT_EQ(team_for(4), 2);
  }
  EXPECT_EQ(team_for(3), 3);
  EXPECT_EQ(team_for(4), 4);
  EXPECT_EQ(team_for(2), 2);
}

TEST(TicketTest, WakesWhoeverSleeps) {
  for (const int microseconds : {0, 20, 1000000}) {
    const std::chrono::microseconds patience(microseconds);
    Ticket there, back;
    int cell = 0;
    std::thread other([&] {
      for (std::uint32_t i = 1; i <= 2000; ++i) {
        there.wait_for(i, patience);
        ++cell;
        back.set(i);
      }
    });
    for (std::uint32_t i = 1; i <= 2000; ++i) {
      there.set(i);
      back.wait_for(i, patience);
      ASSERT_EQ(cell, static_cast<int>(i));
    }
    other.join();
  }
}

TEST(TicketTest, NumbersWrapAround) {
  Ticket ticket;
  constexpr auto none = std::chrono::nanoseconds(0);
  ticket.set(0x7fffffff);
  ticket.wait_for(0x7fffffff, none);
  ticket.set(0xfffffff0);
  ticket.wait_for(0xffffffef, none);
  ticket.set(5);  // later than all of these
  ticket.wait_for(0xffffffff, none);
  ticket.wait_for(5, none);
}

TEST(BarrierTest, OfOneDoesNotWait) {
  TeamBarrier barrier(1);
  barrier.wait(0);
  barrier.wait(0);
}

/// A fresh process per row: the variable is read once, by the first use of the pool.
struct EnvironmentRow {
  const char* value;
  int threads;  // 0: an error that names the variable
};
class ThreadEnvironmentTest : public testing::TestWithParam<EnvironmentRow> {};

TEST_P(ThreadEnvironmentTest, IsReadOrRefused) {
  const auto child = [] {
    setenv("GRADUS_NUM_THREADS", GetParam().value, 1);
    try {
      const int threads = pool().threads();
      std::atomic<int> parts = 0;
      pool().run(threads, [&](int, int) { ++parts; });
      std::exit(threads == GetParam().threads && parts == threads ? 0 : 1);
    } catch (const InvalidArgument& error) {
      const std::string message = error.what();
      const bool names = message.find("GRADUS_NUM_THREADS") != std::string::npos;
      std::exit(GetParam().threads == 0 && names && message.find(GetParam().value) != std::string::npos ? 0 : 2);
    }
  };
  GRADUS_IN_NEW_PROCESS();
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}
INSTANTIATE_TEST_SUITE_P(Rows, ThreadEnvironmentTest,
                         testing::Values(EnvironmentRow{"1", 1}, EnvironmentRow{"3", 3}, EnvironmentRow{"0", 0},
                                         EnvironmentRow{"-2", 0}, EnvironmentRow{"2x", 0}, EnvironmentRow{" 2", 0},
                                         EnvironmentRow{"many", 0}, EnvironmentRow{"99999999999", 0}));

/// The destructor of a static runs after main, and after the statics of the library may be gone.
TEST(ThreadExitTest, StaticsMayComputeAtTheEnd) {
  const auto child = [] {
    struct Late {
      ~Late() {
        std::atomic<int> parts = 0;
        pool().run(2, [&](int, int) { ++parts; });
        if (parts != 2) std::_Exit(1);
      }
    };
    static Late late;
    set_num_threads(2);
    pool().run(2, [](int, int) {});
    std::exit(0);
  };
  GRADUS_IN_NEW_PROCESS();
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

TEST(OneThreadTest, ComputesAloneWhileTheOthersDoNot) {
  set_num_threads(3);
  const auto teams = [] {
    std::atomic<int> workers = 0;
    pool().run(3, [&](int, int team_size) { workers = team_size; });
    return workers.load();
  };
  {
    const OneThread alone;
    EXPECT_EQ(num_threads(), 1);
    EXPECT_EQ(teams(), 1);
    {
      const OneThread nested;
      EXPECT_EQ(teams(), 1);
    }
    EXPECT_EQ(num_threads(), 1);
    EXPECT_THROW(set_num_threads(2), InvalidArgument);
    int of_another = 0, team = 0;
    std::thread([&] {
      of_another = num_threads();
      team = teams();
    }).join();
    EXPECT_EQ(of_another, 3);
    EXPECT_EQ(team, 3);
  }
  EXPECT_EQ(num_threads(), 3);
  EXPECT_EQ(teams(), 3);
}

/// Of a thread that stands for several workers; the others wait each for itself.
TEST(BarrierTest, MeetsWithThreadsThatHaveSeveralSeats) {
  for (const std::vector<int>& several : {std::vector{0, 1}, {0, 2}, {0, 1, 2, 4}, {0, 3, 4}, {0, 1, 2, 3, 4}}) {
    const int size = 5;
    TeamBarrier barrier(size);
    std::atomic<int> come = 0, wrong = 0;
    const auto attend = [&](const std::vector<int>& seats) {
      for (int meeting = 1; meeting <= 200; ++meeting) {
        come += static_cast<int>(seats.size());
        barrier.wait(seats);
        wrong += come < meeting * size;
        barrier.wait(seats);
      }
    };
    std::vector<std::thread> others;
    for (int w = 0; w < size; ++w)
      if (std::ranges::find(several, w) == several.end()) others.emplace_back([&, w] { attend({w}); });
    attend(several);
    for (std::thread& other : others) other.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(BarrierTest, MayBeTriedBeforeItIsWaitedFor) {
  TeamBarrier barrier(2);
  EXPECT_FALSE(barrier.wait_shortly(0));
  EXPECT_FALSE(barrier.wait_shortly(0));
  std::thread other([&] {
    for (int meeting = 0; meeting < 100; ++meeting) barrier.wait(1);
  });
  for (int meeting = 0; meeting < 100; ++meeting)
    if (!barrier.wait_shortly(0)) barrier.wait(0);
  other.join();
}

TEST(TicketTest, WhoIsRousedLooksAgain) {
  Ticket ticket;
  constexpr std::chrono::milliseconds patience(1);
  std::thread other([&] { ticket.wait_for(1, patience); });
  for (int i = 0; i < 3; ++i) {
    while (!ticket.is_asleep()) std::this_thread::yield();
    while (ticket.is_asleep()) ticket.rouse();
  }
  ticket.set(1);
  other.join();
}

#if !defined(__SANITIZE_THREAD__)      // which puts signals off, and does not follow a fork of several threads
constexpr double some_gain = 200'000;  // nanoseconds: workers are woken for it

TEST(AbsenceTest, WhoDoesNotComeIsCalledOff) {
  set_num_threads(4);
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> parts = 0;
    const auto body = [&](int worker, int team_size) {
      ++parts;
      if (worker != 0) return;
      EXPECT_EQ(team_size, 4);
      const auto absent = pool().call_off_absent(std::chrono::seconds(round == 0 ? 0 : 10));
      parts += static_cast<int>(absent.size());
    };
    {
      const StoppedWorkers stopped({1, 3});
      std::vector<int> absent;
      pool().run(4,
                 [&](int worker, int) {
                   if (worker != 0) return;
                   const auto called_off = pool().call_off_absent(std::chrono::milliseconds(1));
                   absent.assign(called_off.begin(), called_off.end());
                 },
                 {.gain = some_gain});
      EXPECT_EQ(std::ranges::count(absent, 1) + std::ranges::count(absent, 3), 2);
    }
    pool().run(4, body, {.gain = some_gain});
    EXPECT_EQ(parts, 4) << "those that were called off once come again";
  }
}

TEST(AbsenceTest, NobodyIsNeededWherePiecesAreClaimed) {
  set_num_threads(3);
  const StoppedWorkers stopped({1, 2});
  for (int job = 0; job < 3; ++job) {
    std::atomic<int> next = 0, done = 0;
    pool().run(3,
               [&](int, int) {
                 while (next++ < 100) ++done;
               },
               {.claims = true});
    EXPECT_EQ(done, 100);
  }
}

/// Waits that cost more than the team gains: fewer are called, and all again after enough work.
TEST(AbsenceTest, FewerAreCalledWhereTheyComeLate) {
  set_num_threads(2);
  EXPECT_EQ(pool().threads_for_short_work(), 2);
  int jobs = 0;
  for (; pool().threads_for_short_work() == 2 && jobs < 100; ++jobs)
    pool().run(2,
               [](int worker, int) {
                 if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
               },
               {.gain = some_gain});
  EXPECT_EQ(pool().threads_for_short_work(), 1);
  EXPECT_EQ(pool().threads(), 2) << "of long work all are worth it";
  pool().did_short_work(1e12);
  EXPECT_EQ(pool().threads_for_short_work(), 2);
  set_num_threads(1);
  set_num_threads(2);
}

/// A job that gains less than waking somebody costs does not wait for those who sleep, but wakes them for the next.
TEST(AbsenceTest, SleepersAreNotWaitedFor) {
  if (available_cores() < 2) GTEST_SKIP() << "with one core nobody looks for the next job";
  set_num_threads(2);
  const ThreadPool::Absence little{.gain = 10'000};
  const auto team_of_job = [&] {
    int team = 0;
    pool().run(
        2,
        [&](int worker, int team_size) {
          if (worker == 0) team = team_size;
        },
        little);
    return team;
  };
  pool().run(2, [](int, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than workers look
  EXPECT_EQ(team_of_job(), 1);
  int jobs = 0;
  while (team_of_job() == 1 && jobs < 10'000'000) ++jobs;
  EXPECT_LT(jobs, 10'000'000);
}

TEST(ThreadExitTest, AForkedProcessComputesAlone) {
  set_num_threads(2);
  pool().run(2, [](int, int) {});
  const pid_t child = fork();
  if (child == 0) {
    int parts = 0;
    pool().run(2, [&](int, int team_size) { parts += team_size; });
    _exit(parts == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace gradus::thread_pool_test
