/// Stages, division and failures, with kernels that watch how they are called.
#include "gradus/backend/cpu/run/executor.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <random>
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/base/thread_pool.h"
#include "tests/backend/sample_ops.h"
#include "tests/floating_point_states.h"
#include "tests/stopped_workers.h"
#include "tests/threads.h"

namespace gradus::executor_test {
namespace {

constexpr std::int64_t expensive = 1 << 22, cheap = 64;  // bytes: far above and below what a fork costs

/// What a kernel of these tests is told, and what it notes.
struct Watched {
  std::int64_t grain = 1;
  std::vector<std::int64_t> failing = {};
  std::vector<const Watched*> before = {};                   // which have to be complete when it begins
  std::vector<std::unique_ptr<std::atomic<int>>> seen = {};  // how often each element was computed
  std::atomic<bool> in_order = true, flushes = true, aligned = true, scratch_is_own = true;
  std::atomic<int> calls = 0;

  bool complete() const {
    return std::ranges::all_of(seen, [](const auto& count) { return count->load() == 1; });
  }
};

void watch(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  auto& watched = *const_cast<Watched*>(static_cast<const Watched*>(arguments->data));
  const auto size = static_cast<std::int64_t>(watched.seen.size());
  ++watched.calls;
  for (const Watched* other : watched.before) watched.in_order = watched.in_order && other->complete();
  if ((vector_controls() & flushing_bits) != flushing_bits) watched.flushes = false;
  if (begin % watched.grain != 0 || (end % watched.grain != 0 && end != size)) watched.aligned = false;
  auto* scratch = static_cast<volatile std::int64_t*>(arguments->scratch);
  *scratch = begin;
  for (std::int64_t i = begin; i < end; ++i) {
    ++*watched.seen[static_cast<std::size_t>(i)];
    if (std::ranges::count(watched.failing, i) > 0) report_failure(arguments, i, 100 + i);
  }
  if (*scratch != begin) watched.scratch_is_own = false;
}

/// Thunks over watched elements, arranged in stages by hand.
struct Arrangement {
  const ThreadRatesScope rates{ThreadRates()};  // what is divided follows from them
  std::vector<std::shared_ptr<Watched>> watched;
  Lowered lowered;
  StagePlan schedule;

  Watched& add(std::size_t stage, std::int64_t extent, std::int64_t grain, std::int64_t bytes,
               std::vector<std::int64_t> failing = {}) {
    auto& w = *watched.emplace_back(std::make_shared<Watched>());
    w.grain = grain;
    w.failing = std::move(failing);
    for (std::int64_t i = 0; i < extent; ++i) w.seen.push_back(std::make_unique<std::atomic<int>>(0));
    if (schedule.stages.size() <= stage) schedule.stages.resize(stage + 1);
    schedule.stages[stage].push_back(static_cast<int>(lowered.thunks.size()));
    lowered.thunks.push_back({.run = watch,
                              .data = watched.back(),
                              .extent = extent,
                              .grain = grain,
                              .bytes = bytes,
                              .worker_scratch = 64,
                              .failure = "it failed"});
    return w;
  }
  /// Each thunk waits for all of earlier stages.
  void expect_order() {
    for (std::size_t s = 1; s < schedule.stages.size(); ++s)
      for (int t : schedule.stages[s])
        for (std::size_t earlier = 0; earlier < s; ++earlier)
          for (int u : schedule.stages[earlier])
            watched[static_cast<std::size_t>(t)]->before.push_back(watched[static_cast<std::size_t>(u)].get());
  }
  std::unique_ptr<Binding> bound(int threads) const { return bind(Graph{}, lowered, schedule, {}, threads); }
  std::unique_ptr<Binding> run(int threads, ErrorWord& error) {
    const Threads scope(threads);
    auto binding = bound(threads);
    const Ref<Buffer> arena = Buffer::allocate(binding->arena_bytes);
    execute(*binding, nullptr, arena->data<std::byte>(), error);
    return binding;
  }
};

class Executor : public testing::TestWithParam<int> {};

TEST_P(Executor, ComputesEveryElementOnceInOrderOfStages) {
  Arrangement a;
  a.add(0, 1000, 64, expensive);
  a.add(0, 10, 1, cheap);
  a.add(0, 37, 37, expensive);
  a.add(1, 5, 1, cheap);
  a.add(2, 7, 1, cheap);
  a.add(2, 3, 1, cheap);
  a.add(3, 999, 8, expensive);
  a.add(3, 0, 8, expensive);
  a.expect_order();
  const std::uint64_t before = vector_controls();
  ErrorWord error;
  const auto binding = a.run(GetParam(), error);
  EXPECT_EQ(binding->team, GetParam());
  EXPECT_EQ(vector_controls(), before);
  EXPECT_EQ(error.thunk, -1);
  for (const auto& w : a.watched) {
    EXPECT_TRUE(w->complete() && w->in_order && w->flushes && w->aligned && w->scratch_is_own);
    EXPECT_LE(w->calls, GetParam());
  }
  EXPECT_EQ(a.watched[7]->calls, 0);  // nothing to do is not begun
}

TEST_P(Executor, StopsAfterTheStageThatFailsAndNamesTheFirst) {
  for (const std::int64_t cost : {cheap, expensive}) {
    Arrangement a;
    a.add(0, 1000, 1, cost);
    a.add(1, 1000, 1, cost);
    a.add(1, 1000, 1, cost, {999, 30, 600});
    a.add(1, 1000, 1, cost, {2});
    a.add(2, 1000, 1, cost, {0});
    a.add(3, 1000, 1, cost);
    ErrorWord error;
    a.run(GetParam(), error);
    EXPECT_EQ(error.thunk, 2);
    EXPECT_EQ(error.index, 30);
    EXPECT_EQ(error.value, 130);
    EXPECT_TRUE(a.watched[1]->complete());
    EXPECT_EQ(a.watched[4]->calls, 0);
    EXPECT_EQ(a.watched[5]->calls, 0);
  }
}
INSTANTIATE_TEST_SUITE_P(Threads, Executor, testing::Values(1, 2, 3, 8));

TEST(Team, SmallProgramsStayOnTheCaller) {
  Arrangement a;
  for (std::size_t stage = 0; stage < 17; ++stage) a.add(stage, 64, 1, cheap);
  EXPECT_EQ(a.bound(8)->team, 1);
  ASSERT_EQ(a.bound(8)->sections.size(), 1u);
  a.add(17, 64, 1, expensive);
  EXPECT_EQ(a.bound(8)->team, 8);
  EXPECT_EQ(a.bound(8)->sections.size(), 2u);
  EXPECT_EQ(a.bound(1)->team, 1);
}

TEST(Team, IndependentThunksRunSideBySide) {
  Arrangement a;
  for (int i = 0; i < 6; ++i) a.add(0, 1, 1, expensive);  // each too small to be divided
  const auto binding = a.bound(3);
  std::vector<int> owners(3);
  for (const Job& job : binding->jobs) ++owners[static_cast<std::size_t>(job.owner)];
  EXPECT_EQ(owners, (std::vector<int>{2, 2, 2}));
}

TEST(Team, ScratchLiesWhereNoTemporaryOfItsStageDoes) {
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    Arrangement a;
    constexpr int stages = 12;
    for (int s = 0; s < stages; ++s) {
      a.add(static_cast<std::size_t>(s), 100, 1, s % 3 == 0 ? cheap : expensive);
      Thunk& thunk = a.lowered.thunks.back();
      thunk.worker_scratch = static_cast<std::int64_t>(random() % 3 * 1000);
      thunk.shared_scratch = static_cast<std::int64_t>(random() % 5 * 700);
      const int last = s + static_cast<int>(random() % (stages + 2));  // some live on past the end
      a.schedule.temporaries.push_back({.slot = 0, .thunk = s, .first = s, .last = last});
    }
    const auto binding = a.bound(3);
    for (const Job& job : binding->jobs) {
      const std::int64_t end = job.scratch + binding->team * job.scratch_stride;
      EXPECT_LE(end, binding->arena_bytes);
      for (std::size_t i = 0; i < a.schedule.temporaries.size() && job.scratch_stride > 0; ++i) {
        const Temporary& t = a.schedule.temporaries[i];
        if (job.thunk < t.first || job.thunk > t.last || binding->bytes[i] == 0) continue;
        const std::int64_t first = binding->temporaries[i].second;
        EXPECT_TRUE(end <= first || job.scratch >= first + binding->bytes[i]) << job.thunk << ' ' << i;
      }
    }
  }
}

TEST(Team, ABusyPoolLeavesTheCallerAlone) {
  const Threads two(2);
  Arrangement a;
  a.add(0, 1000, 1, expensive);
  a.add(1, 1000, 1, expensive);
  a.expect_order();
  ThreadPool::global().run(2, [&](int worker, int) {
    if (worker != 0) return;
    const auto binding = a.bound(2);
    const Ref<Buffer> arena = Buffer::allocate(binding->arena_bytes);
    ErrorWord error;
    execute(*binding, nullptr, arena->data<std::byte>(), error);
  });
  for (const auto& w : a.watched) EXPECT_TRUE(w->complete() && w->in_order && w->calls == 1);
}

// ---------------------------------------------------------------- members that do not come
#if !defined(__SANITIZE_THREAD__)

struct AbsentRow {
  int team;
  std::vector<int> absent;
};
void PrintTo(const AbsentRow& row, std::ostream* out) {
  *out << "team of " << row.team << " without " << testing::PrintToString(row.absent);
}

class Absent : public testing::TestWithParam<AbsentRow> {
 protected:
  const Threads threads_{GetParam().team};
  ErrorWord error_;

  /// With members that are stopped, then with all, then without them once more.
  void run(const Arrangement& a, const std::function<void(const std::string&)>& check) {
    const auto binding = a.bound(GetParam().team);
    ASSERT_EQ(binding->team, GetParam().team);
    ASSERT_TRUE(binding->is_short);
    const auto execute_once = [&](const std::string& when) {
      for (const auto& w : a.watched) {
        for (const auto& count : w->seen) *count = 0;
        w->in_order = true, w->calls = 0;
      }
      const Ref<Buffer> arena = Buffer::allocate(binding->arena_bytes);
      execute(*binding, nullptr, arena->data<std::byte>(), error_);
      check(when);
    };
    for (int round = 0; round < 2; ++round) {
      {
        const StoppedWorkers stopped(GetParam().absent);
        for (int i = 0; i < 2; ++i) execute_once("without some");
      }
      for (int i = 0; i < 2; ++i) execute_once("with all");
    }
  }
};

TEST_P(Absent, TheCallerDoesTheirParts) {
  Arrangement a;
  a.add(0, 1000, 64, expensive);
  a.add(0, 10, 1, cheap);
  a.add(0, 37, 37, expensive);
  a.add(1, 5, 1, cheap);
  a.add(2, 3, 1, cheap);
  a.add(3, 999, 8, expensive);
  a.add(4, 64, 1, expensive);
  a.expect_order();
  run(a, [&](const std::string& when) {
    EXPECT_EQ(error_.thunk, -1);
    for (const auto& w : a.watched)
      EXPECT_TRUE(w->complete() && w->in_order && w->aligned && w->scratch_is_own) << when;
  });
}

TEST_P(Absent, TheCallerDoesTheirPartsOfOneSection) {
  Arrangement a;
  a.add(0, 1000, 64, expensive);
  a.add(0, 1000, 1, expensive);
  run(a, [&](const std::string& when) {
    for (const auto& w : a.watched) EXPECT_TRUE(w->complete()) << when;
  });
}

TEST_P(Absent, AFailureStopsAsItDoes) {
  Arrangement a;
  a.add(0, 1000, 1, expensive);
  a.add(1, 1000, 1, expensive, {999, 30, 600});
  a.add(2, 1000, 1, expensive);
  run(a, [&](const std::string& when) {
    EXPECT_EQ(error_.thunk, 1) << when;
    EXPECT_EQ(error_.index, 30) << when;
    EXPECT_TRUE(a.watched[1]->complete()) << when;
    EXPECT_EQ(a.watched[2]->calls, 0) << when;
    error_.thunk = -1;
  });
}

/// Piece after piece, each member after the one before it.
TEST_P(Absent, TurnsKeepTheirOrder) {
  static constexpr int pieces = 4;
  struct Turns {
    std::atomic<int> of_piece[pieces] = {};
    std::atomic<int> wrong = 0;
  };
  const auto turns = std::make_shared<Turns>();
  const auto kernel = [](const KernelArguments* arguments, std::int64_t, std::int64_t) {
    auto& t = *const_cast<Turns*>(static_cast<const Turns*>(arguments->data));
    for (std::atomic<int>& piece : t.of_piece) {
      arguments->member->await_turn();
      t.wrong += piece.fetch_add(1) % arguments->member->team != arguments->member->worker;
      arguments->member->end_turn();
    }
  };
  Arrangement a;
  for (std::size_t stage = 0; stage < 3; ++stage) {
    a.add(stage, 1000, 1, expensive);
    Thunk& thunk = a.lowered.thunks.back();
    if (stage == 1) continue;
    a.watched.pop_back();
    thunk.bind = [=](std::span<const std::int64_t>) {
      return BoundThunk{
          .data = turns, .extent = 1000, .bytes = expensive, .in_turns = kernel, .turns = GetParam().team};
    };
  }
  run(a, [&](const std::string& when) {
    EXPECT_TRUE(a.watched[0]->complete()) << when;
    EXPECT_EQ(turns->wrong, 0) << when;
    for (std::atomic<int>& piece : turns->of_piece) EXPECT_EQ(piece.exchange(0), 2 * GetParam().team) << when;
  });
}

INSTANTIATE_TEST_SUITE_P(Members, Absent,
                         testing::Values(AbsentRow{2, {}}, AbsentRow{2, {1}}, AbsentRow{3, {1}}, AbsentRow{3, {2}},
                                         AbsentRow{3, {1, 2}}, AbsentRow{5, {2, 4}}, AbsentRow{8, {3}},
                                         AbsentRow{8, {1, 2, 3, 4, 5, 6, 7}}));
#endif

// ---------------------------------------------------------------- stages of a graph

std::vector<std::vector<int>> stages_of(const std::string& source, bool reuses = true) {
  const Graph graph = parse_graph(source);
  const auto steps = order_steps(graph, single_steps(graph));
  std::vector<Thunk> thunks;
  for (std::size_t s = 0; s < steps.size(); ++s) thunks.push_back({.step = static_cast<int>(s)});
  std::vector<std::vector<int>> stages;
  const Sharing sharing = reuses ? plan_sharing(graph, steps) : Sharing{std::vector<int>(graph.outputs.size(), -1)};
  for (const auto& stage : plan_stages(graph, steps, sharing, thunks, Staging::early).stages) {
    std::vector<int>& values = stages.emplace_back();
    for (int t : stage) values.push_back(steps[static_cast<std::size_t>(t)].members[0]);
    std::ranges::sort(values);
  }
  return stages;
}
using Stages = std::vector<std::vector<int>>;

TEST(Stages, FollowTheOperands) {
  EXPECT_EQ(stages_of("%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = log %0 : f32[4]\n%3 = add %1 %2 : f32[4]\n"
                      "%4 = negative %0 : f32[4]\n%5 = reshape{shape=[2,2]} %3 : f32[2,2]\n%6 = exp %5 : f32[2,2]\n"
                      "return %6 %4\n"),
            (Stages{{1, 2, 4}, {3}, {6}}));
}

TEST(Stages, WhoeverOverwritesWaitsForReadersAndForChecks) {
  EXPECT_EQ(stages_of("%0 = input : f32[4]\n%1 = input : i32[4]\n%2 = exp %0 : f32[4]\n%3 = negative %2 : f32[4]\n"
                      "%4 = negative %0 : f32[4]\n%5 = check_range{limit=4; labels=true} %1 : i32[4]\n"
                      "return %3 %4 %5\ndying %0\n"),
            (Stages{{2, 5}, {3, 4}}));
}

/// %2 is the last to read %1, in whose memory %6 may lie then.
std::string two_sums(const std::string& rows) {
  return "%0 = input : f32[" + rows + ",1024]\n%1 = exp %0 : f32[" + rows + ",1024]\n%2 = sum{axis=-1} %1 : f32[" +
         rows + ",1]\n%3 = input : f32[" + rows + ",1]\n%4 = exp %3 : f32[" + rows + ",1]\n%5 = broadcast{shape=[" +
         rows + ",1024]} %4 : f32[" + rows + ",1024]\n%6 = multiply %0 %5 : f32[" + rows +
         ",1024]\n%7 = sum{axis=-1} %6 : f32[" + rows + ",1]\n";
}

TEST(Stages, AreCutInTwoWhereMostMemoryIsNeeded) {
  const auto source = [](const std::string& rows) { return two_sums(rows) + "return %2 %7\n"; };
  const Stages together{{1, 4}, {2, 6}, {7}}, apart{{1, 4}, {2}, {6}, {7}};
  EXPECT_EQ(stages_of(source("1024")), apart);
  EXPECT_EQ(stages_of(source("4*s0")), apart);
  EXPECT_EQ(stages_of(source("1024"), false), together);
  EXPECT_EQ(stages_of(source("8")), together);  // there is little to gain
}

/// Looked at once for all of them: not for each step all others, which would take minutes.
TEST(Stages, AreCutInTwoAmongThousandsOfOtherSteps) {
  std::string source = two_sums("1024") + "%8 = input : f32[4]\n", results = "return %2 %7";
  Stages expected{{1, 4}, {2}, {6}, {7}};
  for (int i = 9; i < 10000; i += 2) {
    source += text('%', i, " = exp %8 : f32[4]\n%", i + 1, " = negative %", i, " : f32[4]\n");
    results += text(" %", i + 1);
    expected[0].push_back(i);
    expected[2].push_back(i + 1);
  }
  EXPECT_EQ(stages_of(source + results + "\n"), expected);
}

TEST(Stages, MemoryLivesFromItsWriterToItsLastReader) {
  const Graph graph = parse_graph(
      "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = exp %1 : f32[4]\n%3 = exp %2 : f32[4]\n%4 = add %3 %1 : f32[4]\n"
      "return %4\n");
  const auto steps = single_steps(graph);
  std::vector<Thunk> thunks;
  for (int s = 0; s < 4; ++s) thunks.push_back({.step = s});
  const StagePlan schedule = plan_stages(graph, steps, plan_sharing(graph, steps), thunks, Staging::early);
  ASSERT_EQ(schedule.temporaries.size(), 3u);
  const std::pair<int, int> lives[] = {{0, 3}, {1, 2}, {2, 3}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(schedule.temporaries[i].slot, static_cast<int>(i) + 1);
    EXPECT_EQ(std::pair(schedule.temporaries[i].first, schedule.temporaries[i].last), lives[i]);
  }
}

}  // namespace
}  // namespace gradus::executor_test
