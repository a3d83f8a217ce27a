/// Ranks of `gradus launch` that fail, end early, or are stopped: all end, and the launcher names the rank that was the
/// cause. Skipped without UCX or gRPC.
#include <signal.h>
#include <unistd.h>
#include "gradus/gradus.h"
#include "tests/apps/launch_process.h"
#include "tests/components.h"

namespace gradus::command::launched_faults_test {
namespace {

using namespace std::chrono_literals;

/// The body of the ranks: they run this program with only this test. GRADUS_TEST_FAULT is the fault of rank 1.
TEST(LaunchedRank, HasAFault) {
  const char* const variable = std::getenv("GRADUS_TEST_FAULT");
  if (variable == nullptr) GTEST_SKIP() << "the body of started processes";
  Cluster cluster = Cluster::from_environment();
  if (std::getenv("GRADUS_TEST_BY_HAND") != nullptr)
    cluster = {.rank = cluster.rank,
               .timeout = cluster.timeout,
               .size = cluster.size,
               .meeting_point = cluster.meeting_point,
               .credentials = cluster.credentials};
  const std::string fault = cluster.rank == 1 ? variable : "";
  if (fault == "before the meeting") _exit(0);
  {
    const MultiWorkerMirroredStrategy strategy(cluster, {.micro_shards = 6});
    for (int step = 0; step < 4; ++step) {
      strategy.run([](Tensor x) { return all_reduce_sum(reduce_sum(x)); }, ones({12}));
      if (step != 1) continue;
      if (fault == "throws") throw std::runtime_error("planned");
      if (fault == "ends") _exit(0);
      if (fault == "stops") raise(SIGSTOP);
      if (fault == "has fewer steps") break;
    }
  }
  if (fault == "stops at the end") raise(SIGSTOP);
}

/// The same with parameter servers.
TEST(LaunchedWorker, HasAFault) {
  if (std::getenv("GRADUS_TEST_FAULT") == nullptr) GTEST_SKIP() << "the body of started processes";
  const Cluster cluster = Cluster::from_environment();
  const ParameterServerStrategy strategy(cluster, {.max_staleness = 1});
  Variable steps(zeros({}, i64), "steps");
  const auto step = function([&](Tensor x) {
    steps.assign_add(ones({}, i64));
    return Loss::mean(x);
  });
  for (int i = 0; i < 6; ++i) {
    if (i == 3 && cluster.rank == 1) raise(SIGSTOP);
    strategy.schedule(step, full({2}, i));
  }
  strategy.join();
}

class LaunchedFaults : public LaunchTest {
 protected:
  void SetUp() override {
    if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
    LaunchTest::SetUp();
  }
  /// Waits of `timeout` and `heartbeat` seconds.
  int launch(const std::string& fault, int timeout, int heartbeat, int servers = 0) {
    const VariablesOfTest variables{
        {"GRADUS_TEST_FAULT", fault},
        {"GRADUS_CLUSTER", text("{\"timeout\": ", timeout, ", \"heartbeat\": ", heartbeat, "}")}};
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const auto begin = std::chrono::steady_clock::now();
    const int status = run({"launch", "-n", "3", "--servers", std::to_string(servers), "--", program,
                            text("--gtest_filter=", servers > 0 ? "LaunchedWorker" : "LaunchedRank", ".HasAFault")});
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return status;
  }
  double seconds_ = 0;
};

TEST_F(LaunchedFaults, TheRankThatThrewIsNamed) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(launch("throws", 60, 10), failed);
    expect_error("gradus launch: rank 1 ended with exit code 1\n");
    EXPECT_NE(output_.find("planned"), std::string::npos) << "its own words are lost: " << output_;
  }
}

TEST_F(LaunchedFaults, TheRankThatThrewIsNamedWhereTheProgramMakesItsCluster) {
  const VariablesOfTest variables{{"GRADUS_TEST_BY_HAND", "1"}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(launch("throws", 60, 10), failed);
    expect_error("gradus launch: rank 1 ended with exit code 1\n");
  }
}

TEST_F(LaunchedFaults, ARankThatEndsEarlyIsNamedAtOnce) {
  EXPECT_EQ(launch("before the meeting", 100, 10), failed);
  expect_error("gradus launch: rank 1 ended with exit code 0 before it had met the others, and rank ");
  expect_error(" waits to meet it\n");
  EXPECT_LT(seconds_, 60);
  EXPECT_EQ(launch("ends", 100, 10), failed);
  expect_error("gradus launch: rank 1 ended with exit code 0 before its work with the others was done, and rank ");
  EXPECT_LT(seconds_, 60);
}

TEST_F(LaunchedFaults, ARankThatLeftInOrderIsNotBlamed) {
  EXPECT_EQ(launch("has fewer steps", 100, 2), failed);
  EXPECT_NE((output_ + errors_).find(") has left in order after step 2: "), std::string::npos) << output_ << errors_;
  EXPECT_EQ(errors_.find("gradus launch: rank 1"), std::string::npos) << errors_;
  EXPECT_LT(seconds_, 60);
}

TEST_F(LaunchedFaults, AStoppedRankIsNamedAndEnded) {
  EXPECT_EQ(launch("stops", 20, 1), failed);
  expect_error("gradus launch: rank 1 is stopped (by SIGSTOP or the like), and rank ");
  EXPECT_EQ(launch("stops at the end", 4, 1), failed);
  expect_error("gradus launch: waits for rank 1 (stopped), ");
  expect_error(
      "gradus launch: rank 1 has been stopped for 4 s (by SIGSTOP or the like), which is Cluster::timeout: it is "
      "ended\n");
  expect_error("gradus launch: rank 1 was killed by signal 9 (Killed)\n");
}

TEST_F(LaunchedFaults, AStoppedWorkerOfParameterServersIsNamedAndEnded) {
  launch("stops", 4, 1, 1);  // the others do its steps
  expect_error("gradus launch: rank 1 has been stopped for 4 s");
  EXPECT_LT(seconds_, 60);
}

}  // namespace
}  // namespace gradus::command::launched_faults_test
