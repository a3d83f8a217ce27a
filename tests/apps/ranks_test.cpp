/// `gradus train` on several ranks: the bits of one process with as many shards, also when it goes on with another
/// number of ranks. Skipped where UCX or gRPC is not there.
#include "tests/apps/command_process.h"
#include "tests/apps/launch_process.h"
#include "tests/components.h"

namespace gradus::command::ranks_test {
namespace {

constexpr const char* training = R"(
seed = 5
[[layers]]
type = "flatten"
[[layers]]
type = "dense"
units = 16
activation = "relu"
[[layers]]
type = "batch_normalization"
[[layers]]
type = "dropout"
rate = 0.2
[[layers]]
type = "dense"
units = 4
[train]
epochs = 4
batch_size = 25
validate_each_epoch = true
[distribute]
micro_shards = 4
)";

class TrainingOnRanks : public CommandProcessTest {
 protected:
  void SetUp() override {
    if (const std::string problem = problem_of_ucx() + problem_of_grpc(); !problem.empty()) GTEST_SKIP() << problem;
    CommandTest::SetUp();
    write_images("train", 160, 8);
    write_images("test", 40, 8);
    write("config.toml", std::string(training) + idx_data);
  }

  /// Runs `gradus train` with these arguments on so many ranks; all have to end well.
  void train(std::vector<std::string> arguments, int ranks) {
    arguments.insert(arguments.begin(), {"launch", "-n", std::to_string(ranks), "--", GRADUS_COMMAND, "train"});
    arguments.insert(arguments.end(), {"--threads", "1", "--quiet"});
    EXPECT_EQ(run(arguments), ok) << output_ << errors_;
  }

  std::string weights(const char* run) const { return contents(root_ / run / "weights.safetensors"); }
};

TEST_F(TrainingOnRanks, HasTheBitsOfOneProcess) {
  const std::string config = (root_ / "config.toml").string();
  const auto directory = [&](const char* name) { return (root_ / name).string(); };
  train({config, "--output", directory("one")}, 1);
  train({config, "--output", directory("three")}, 3);
  ASSERT_FALSE(weights("one").empty());
  EXPECT_EQ(weights("one"), weights("three"));

  // Half of it on two ranks, the rest on four.
  train({config, "--output", directory("resumed"), "--epochs", "2"}, 2);
  EXPECT_NE(weights("one"), weights("resumed"));
  train({"--resume", directory("resumed"), "--epochs", "4"}, 4);
  EXPECT_EQ(weights("one"), weights("resumed"));
}

/// Rank 0 says what one process would say, and the others nothing.
TEST_F(TrainingOnRanks, EvaluatesAndPredicts) {
  const std::string run = (root_ / "run").string();
  train({(root_ / "config.toml").string(), "--output", run, "--epochs", "1"}, 1);
  for (const std::vector<std::string>& rest :
       {std::vector<std::string>{"eval", run, "--json"}, {"predict", run, (root_ / "test_images").string()}}) {
    EXPECT_EQ(this->run(rest), ok) << errors_;
    const std::string alone = output_;
    std::vector<std::string> launched{"launch", "-n", "3", "--", GRADUS_COMMAND};
    launched.insert(launched.end(), rest.begin(), rest.end());
    EXPECT_EQ(this->run(launched), ok) << output_ << errors_;
    std::string said, line;
    std::istringstream lines(alone);
    while (std::getline(lines, line)) said += "[0] " + line + '\n';
    EXPECT_EQ(output_, said);
  }
}

TEST_F(TrainingOnRanks, AreRefusedWhereEachWouldDoAll) {
  const std::string config = (root_ / "config.toml").string(), output = (root_ / "refused").string();
  EXPECT_EQ(run({"launch", "-n", "2", "--", GRADUS_COMMAND, "tune", config, "--output", output}), failed);
  expect_error("tune: GRADUS_CLUSTER names 2 ranks, and each would do all of it; start one process");
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(TrainingOnRanks, RefusesRolesThatDoNotTrain) {
  const std::string config = (root_ / "config.toml").string(), output = (root_ / "refused").string();
  EXPECT_EQ(run({"launch", "-n", "2", "--servers", "1", "--", GRADUS_COMMAND, "train", config, "--output", output}),
            failed);
  expect_error("GRADUS_CLUSTER names 1 parameter servers, but this command has all ranks in step");
  {
    const VariablesOfTest variables{
        {"TF_CONFIG", R"({"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}})"}};
    EXPECT_EQ(run({"train", config, "--output", output}), usage);
    expect_error("TF_CONFIG says that this process is of the task evaluator");
  }
  EXPECT_FALSE(std::filesystem::exists(output));
}

/// Each rank keeps a part of the optimizer's state; one process goes on with what two have saved.
TEST_F(TrainingOnRanks, HasTheBitsOfOneProcessWithADividedOptimizer) {
  const std::string config = (root_ / "config.toml").string(), run = (root_ / "divided").string();
  train({config, "--output", (root_ / "one").string()}, 1);
  train({config, "--output", run, "--epochs", "2", "--set", "distribute.shard_optimizer=true"}, 2);
  train({"--resume", run, "--epochs", "3"}, 3);
  train({"--resume", run, "--epochs", "4"}, 1);
  ASSERT_FALSE(weights("one").empty());
  EXPECT_EQ(weights("one"), weights("divided"));
}

/// How batches are divided is a part of the training.
TEST_F(TrainingOnRanks, SayWhereTheDivisionOfBatchesChanges) {
  const std::string config = (root_ / "config.toml").string(), run = (root_ / "divided").string();
  train({config, "--output", run, "--epochs", "1"}, 1);
  EXPECT_EQ(this->run({"launch", "-n", "2", "--", GRADUS_COMMAND, "train", "--resume", run, "--epochs", "2", "--set",
                       "distribute.micro_shards=2"}),
            failed);
  expect_error("the checkpoint is of a training with batches in 4 shards, and micro_shards is now 2");

  const std::string whole = (root_ / "whole").string();
  std::string without(training);
  without.resize(without.find("[distribute]"));
  write("whole.toml", without + idx_data);
  train({(root_ / "whole.toml").string(), "--output", whole, "--epochs", "1"}, 1);
  train({"--resume", whole, "--epochs", "2"}, 2);
  expect_error("[0] gradus: this training had whole batches, and goes on with batches in 8 shards");
}

/// A rank is killed after the first checkpoint. The others end, and two ranks go on where three were.
TEST_F(TrainingOnRanks, GoOnWithFewerAfterOneWasKilled) {
  const std::string config = (root_ / "config.toml").string(), run = (root_ / "elastic").string();
  train({config, "--output", (root_ / "one").string(), "--epochs", "60"}, 1);
  const std::string command =
      std::string(GRADUS_COMMAND) + " train '" + config + "' --output '" + run + "' --epochs 60 --threads 1 --quiet";
  const std::string script = "rank=${GRADUS_CLUSTER#*rank\\\":}; rank=${rank%%,*}; cd '" + root_.string() +
                             "'\nif [ $rank = 1 ] && [ -z \"$GRADUS_RESTART\" ]; then " + command +
                             " & process=$!; until ls elastic/checkpoints/* > files 2> no; do sleep 0.01; done; "
                             "kill -9 $process; exit 1; fi\nexec " +
                             command;
  EXPECT_EQ(this->run({"launch", "-n", "3", "--restarts", "1", "--elastic", "2", "--", "/bin/sh", "-c", script}), ok)
      << output_ << errors_;
  expect_error("gradus launch: 2 ranks are started again, 1 of 1\n");
  ASSERT_FALSE(weights("elastic").empty());
  EXPECT_EQ(weights("one"), weights("elastic"));
}

}  // namespace
}  // namespace gradus::command::ranks_test
