/// `gradus train` on several ranks: the bits of one process with as many shards, also when it goes on with another
/// number of ranks. Skipped where UCX or gRPC is not there.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <algorithm>
#include "gradus/distribute/component.h"
#include "gradus/base/error.h"
#include "tests/apps/command_fixture.h"

extern char** environ;

namespace gradus::command {
namespace {
namespace fs = std::filesystem;

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

class TrainingOnRanks : public CommandTest {
 protected:
  void SetUp() override {
    try {
      load({"gradus_ucx", "gradus_ucx", "sending messages between processes by UCX", "libucx-dev", "libucx0"});
      load({"gradus_grpc", "gradus_grpc", "the meeting of processes by gRPC", "libgrpc++-dev", "libgrpc++1.51"});
    } catch (const Unavailable& error) { GTEST_SKIP() << error.what(); }
    CommandTest::SetUp();
    write_images("train", 160, 8);
    write_images("test", 40, 8);
    write("config.toml", std::string(training) + idx_data);
  }

  /// Runs `gradus train` with these arguments on so many ranks; all have to end well.
  void train(std::vector<std::string> arguments, int ranks) {
    arguments.insert(arguments.begin(), {GRADUS_COMMAND, "train"});
    arguments.insert(arguments.end(), {"--threads", "1", "--quiet"});
    const std::string port = std::to_string(21'000 + (getpid() * 31 + next_++ * 17) % 9'000);
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> variables;
      for (char** each = environ; *each; ++each) variables.emplace_back(*each);
      variables.push_back("GRADUS_CLUSTER={\"size\": " + std::to_string(ranks) + ", \"rank\": " + std::to_string(rank) +
                          ", \"meeting_point\": \"127.0.0.1:" + port + "\", \"token\": \"of_the_test\"}");
      children.push_back(start(arguments, variables, "said." + std::to_string(rank)));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      int status = 0;
      EXPECT_EQ(waitpid(children[static_cast<std::size_t>(rank)], &status, 0),
                children[static_cast<std::size_t>(rank)]);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == ok)
          << "rank " << rank << ": " << contents(root_ / ("said." + std::to_string(rank)));
    }
  }

  std::string weights(const char* run) const { return contents(root_ / run / "weights.safetensors"); }

 private:
  pid_t start(std::vector<std::string>& arguments, std::vector<std::string>& variables, const std::string& said) const {
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> all;
      for (std::string& each : texts) all.push_back(each.data());
      all.push_back(nullptr);
      return all;
    };
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, (root_ / said).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t child = 0;
    EXPECT_EQ(
        posix_spawn(&child, GRADUS_COMMAND, &files, nullptr, pointers(arguments).data(), pointers(variables).data()),
        0);
    posix_spawn_file_actions_destroy(&files);
    return child;
  }
  int next_ = 0;
};

TEST_F(TrainingOnRanks, HasTheBitsOfOneProcess) {
  const std::string config = (root_ / "config.toml").string();
  const auto run = [&](const char* name) { return (root_ / name).string(); };
  train({config, "--output", run("one")}, 1);
  train({config, "--output", run("three")}, 3);
  ASSERT_FALSE(weights("one").empty());
  EXPECT_EQ(weights("one"), weights("three"));

  // Half of it on two ranks, the rest on four.
  train({config, "--output", run("resumed"), "--epochs", "2"}, 2);
  EXPECT_NE(weights("one"), weights("resumed"));
  train({"--resume", run("resumed"), "--epochs", "4"}, 4);
  EXPECT_EQ(weights("one"), weights("resumed"));
}

}  // namespace
}  // namespace gradus::command
