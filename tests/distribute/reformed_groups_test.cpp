/// Groups that fail and form again at once in the same processes, the documented way after an error: no rank joins the
/// end of the group before. Skipped without gRPC or UCX.
#include <gtest/gtest.h>
#include <condition_variable>
#include <mutex>
#include "gradus/distribute/membership/meeting.h"
#include "gradus/gradus.h"
#include "tests/distribute/processes_as_ranks.h"

namespace gradus::reformed_groups_test {
namespace {

using namespace std::chrono_literals;

/// Each rank fails in turn; the others receive the failure, and all meet again without a pause.
const ProcessJob meets_again("meets again", [](const ProcessOfTest& process) {
  for (int attempt = 0; attempt < 24; ++attempt) {
    Meeting meeting(cluster_of_process(process, 20s), {"print", "1.0"});
    meeting.share("all here", "");
    if (attempt == 23) return meeting.leave();
    const int victim = attempt % process.ranks;
    if (process.rank == victim) continue;  // it ends without leaving
    std::mutex mutex;
    std::condition_variable changed;
    std::string why;
    meeting.on_failure([&](const std::string& told) {
      const std::lock_guard lock(mutex);
      why = told;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait_for(lock, 15s, [&] { return !why.empty(); });
    check(why.find(text("rank ", victim, " (")) != std::string::npos, text("attempt ", attempt, ": ", why));
  }
});

/// One rank throws in each of the first attempts; all others receive that error, and the next attempt succeeds.
const ProcessJob trains_again("trains again", [](const ProcessOfTest& process) {
  constexpr int faults = 4;
  for (int attempt = 0; attempt <= faults; ++attempt) {
    const int victim = attempt % process.ranks;
    try {
      const MultiWorkerMirroredStrategy strategy(cluster_of_process(process, 20s), {.micro_shards = 6});
      for (int step = 0; step < 3; ++step) {
        const auto sums = strategy.run(
            [&](Tensor x) {
              if (step == 2 && attempt < faults && process.rank == victim) throw std::runtime_error("planned");
              return all_reduce_sum(reduce_sum(x));
            },
            ones({12 + step}));
        check(sums[0].item() == 12 + step, "another sum");
      }
      check(attempt == faults, "an attempt goes well that had a fault");
    } catch (const std::exception& error) {
      check(attempt < faults && std::string_view(error.what()).find("planned") != std::string_view::npos,
            text("attempt ", attempt, ": ", error.what()));
    }
  }
});

TEST(ReformedGroups, MeetAgainAtOnce) {
  if (const std::string problem = problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  for (const int ranks : {2, 3, 4})
    expect_all_well(run_as_processes("meets again", ranks, std::to_string(free_port()), {}, 120s));
}

TEST(ReformedGroups, TrainAgainAtOnce) {
  if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  for (int run = 0; run < 4; ++run)
    expect_all_well(run_as_processes("trains again", 3, std::to_string(free_port()), {}, 60s));
}

}  // namespace
}  // namespace gradus::reformed_groups_test
