/// A pause of the whole job, as by a suspended machine or a scheduler, does not count, and the ranks go on. Skipped
/// without UCX or gRPC.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include "gradus/gradus.h"
#include "tests/distribute/processes_as_ranks.h"

namespace gradus::paused_ranks_test {
namespace {

using namespace std::chrono_literals;

/// All processes but the last are ranks, whose waits are shorter than the pause; the last one pauses them.
const ProcessJob paused("paused", [](const ProcessOfTest& process) {
  const int ranks = process.ranks - 1;
  if (process.rank == ranks) {
    std::vector<pid_t> all;
    for (int rank = 0; rank < ranks; ++rank)
      all.push_back(static_cast<pid_t>(std::stoi(process.fetch("process." + std::to_string(rank)))));
    std::this_thread::sleep_for(500ms);
    for (const pid_t each : all) check(kill(each, SIGSTOP) == 0, "a rank has ended");
    std::this_thread::sleep_for(4s);
    for (const pid_t each : all) kill(each, SIGCONT);
    process.publish("over", "");
    return;
  }
  Cluster cluster;
  cluster.size = ranks;
  cluster.rank = process.rank;
  cluster.meeting_point = "127.0.0.1:" + process.option;
  cluster.timeout = 3s;
  cluster.heartbeat = 700ms;
  const MultiWorkerMirroredStrategy strategy(cluster, {.micro_shards = 4});
  process.publish("process." + std::to_string(process.rank), std::to_string(getpid()));
  int after = 0;  // steps since the pause, so that each watch has checked once
  while (after < 30) {
    std::this_thread::sleep_for(process.rank * 10ms);  // rank 0 waits for the others nearly always
    const auto sums = strategy.run([](Tensor x) { return all_reduce_sum(reduce_sum(x)); }, ones({12}));
    check(sums[0].item() == 12, "a sum is another one");
    if (strategy.any(std::filesystem::exists(process.folder / "over"))) ++after;
  }
});

TEST(PausedRanks, GoOn) {
  if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  for (const int ranks : {2, 3})
    expect_all_well(run_as_processes("paused", ranks + 1, std::to_string(free_port()), {}, 40s));
}

}  // namespace
}  // namespace gradus::paused_ranks_test
