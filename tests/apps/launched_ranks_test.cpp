/// A program with a strategy, as `gradus launch` runs it. Skipped where UCX or gRPC is not there.
#include <signal.h>
#include <unistd.h>
#include <iostream>
#include "gradus/gradus.h"
#include "tests/apps/launch_process.h"
#include "tests/components.h"

namespace gradus::command::launched_ranks_test {
namespace {

/// What the ranks are: this program with one test, the one below.
TEST(LaunchedRank, AddsUpOverAllRanks) {
  if (std::getenv("GRADUS_TEST_LAUNCHED") == nullptr) GTEST_SKIP() << "the body of started processes";
  const MultiWorkerMirroredStrategy strategy(Cluster::from_environment(), {.micro_shards = 4});
  const auto sums = strategy.run([](Tensor x) { return all_reduce_sum(reduce_sum(x)); }, ones({12}));
  std::cout << "rank " << strategy.rank() << " of " << strategy.num_replicas_in_sync() << " has " << sums[0].item()
            << std::endl;
}

/// The same with parameter servers.
TEST(LaunchedWorker, CountsTheStepsOfAll) {
  if (std::getenv("GRADUS_TEST_LAUNCHED") == nullptr) GTEST_SKIP() << "the body of started processes";
  const ParameterServerStrategy strategy(Cluster::from_environment(), {.max_staleness = 1});
  if (std::getenv("GRADUS_TEST_KILLED") != nullptr && strategy.rank() == 1) raise(SIGKILL);
  Variable steps(zeros({}, i64), "steps");
  const auto step = function([&](Tensor x) {
    steps.assign_add(ones({}, i64));
    return Loss::mean(x);
  });
  for (int i = 0; i < 6; ++i) strategy.schedule(step, full({2}, i));
  const double loss = strategy.join().item();
  std::cout << "rank " << strategy.rank() << " has " << loss << " after " << steps.value().item() << std::endl;
}

/// A training that does not ask for its rank.
TEST(LaunchedStranger, TrainsByItself) {
  if (std::getenv("GRADUS_TEST_LAUNCHED") == nullptr) GTEST_SKIP() << "the body of started processes";
  Sequential model{Dense(1)};
  SGD optimizer;
  fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(ones({4, 2}), ones({4, 1})).batch(2),
      {.verbose = false});
}

class LaunchedRanks : public LaunchTest {};

TEST_F(LaunchedRanks, ThatDoNotKnowOfEachOtherAreTold) {
  const VariablesOfTest variables{{"GRADUS_TEST_LAUNCHED", "1"}};
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string line =
      "gradus launch: none of the 2 ranks has asked which rank it is, so each has trained all by itself";
  ASSERT_EQ(run({"launch", "-n", "2", "--", program, "--gtest_filter=LaunchedStranger.*"}), ok) << output_ << errors_;
  expect_error(line);
  ASSERT_EQ(run_ranks(2, "'" + program + "' --gtest_filter='LaunchedStranger.*'; exit $?"), ok) << output_ << errors_;
  expect_error(line);  // also of programs that a started program starts
  ASSERT_EQ(run({"launch", "-n", "1", "--", program, "--gtest_filter=LaunchedStranger.*"}), ok) << output_ << errors_;
  EXPECT_EQ(errors_.find("has asked"), std::string::npos) << errors_;
  ASSERT_EQ(run_ranks(2, "exit 0"), ok);  // no training
  EXPECT_EQ(errors_.find("has asked"), std::string::npos) << errors_;
}

TEST_F(LaunchedRanks, TrainWithParameterServers) {
  if (const std::string problem = problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  const VariablesOfTest variables{{"GRADUS_TEST_LAUNCHED", "1"}};
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  ASSERT_EQ(run({"launch", "-n", "2", "--servers", "2", "--", program, "--gtest_filter=LaunchedWorker.*"}), ok)
      << output_ << errors_;
  expect_output("[0] rank 0 has 2.5 after 6\n");
  expect_output("[1] rank 1 has 2.5 after 6\n");
}

TEST_F(LaunchedRanks, GoOnWhereAWorkerOfParameterServersIsKilled) {
  if (const std::string problem = problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  const VariablesOfTest variables{{"GRADUS_TEST_LAUNCHED", "1"}, {"GRADUS_TEST_KILLED", "1"}};
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  ASSERT_EQ(run({"launch", "-n", "3", "--servers", "1", "--", program, "--gtest_filter=LaunchedWorker.*"}), ok)
      << output_ << errors_;
  expect_error("gradus launch: rank 1 was killed by signal 9 (Killed); others do its steps\n");
  expect_output("[0] rank 0 has 2.5 after 6\n");
  expect_output("[2] rank 2 has 2.5 after 6\n");
}

TEST_F(LaunchedRanks, EndWhereRank0OfParameterServersIsKilled) {
  EXPECT_EQ(
      run({"launch", "-n", "2", "--servers", "1", "--", "/bin/sh", "-c",
           R"(case "$GRADUS_CLUSTER" in *parameter_server\"*) ;; *'"rank":0'*) kill -9 $$;; esac; exec sleep 20)"}),
      failed);
  expect_error("gradus launch: rank 0 was killed by signal 9 (Killed)\n");
}

TEST_F(LaunchedRanks, SayThatTheyNeedNoServers) {
  if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  const VariablesOfTest variables{{"GRADUS_TEST_LAUNCHED", "1"}};
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  EXPECT_EQ(run({"launch", "-n", "1", "--servers", "1", "--", program, "--gtest_filter=LaunchedRank.*"}), failed);
  EXPECT_NE((output_ + errors_).find("gradus launch without --servers"), std::string::npos) << output_ << errors_;
}

TEST_F(LaunchedRanks, NameTheServerThatFails) {
  EXPECT_EQ(run({"launch", "-n", "1", "--servers", "1", "--", "/bin/sh", "-c",
                 R"(case "$GRADUS_CLUSTER" in *'"task":"parameter_server"'*) exit 4;; esac; exec sleep 20)"}),
            failed);
  expect_error("gradus launch: parameter server 0 ended with exit code 4\n");
}

TEST_F(LaunchedRanks, TrainTogether) {
  if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  const VariablesOfTest variables{{"GRADUS_TEST_LAUNCHED", "1"}};
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  ASSERT_EQ(run({"launch", "-n", "2", "--", program, "--gtest_filter=LaunchedRank.*"}), ok) << output_ << errors_;
  expect_output("[0] rank 0 of 2 has 12\n");
  expect_output("[1] rank 1 of 2 has 12\n");
}

TEST_F(LaunchedRanks, AreEndedWhenOneOfThemFails) {
  if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
  const VariablesOfTest variables{{"GRADUS_TEST_LAUNCHED", "1"}};
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string script =
      "[ $rank = 0 ] || { sleep 0.2; exit 3; }; exec '" + program + "' --gtest_filter='LaunchedRank.*'";
  EXPECT_EQ(run_ranks(2, script), failed);  // rank 0 waits for another one that will not come
  expect_error("gradus launch: rank 1 ended with exit code 3\n");
}

}  // namespace
}  // namespace gradus::command::launched_ranks_test
