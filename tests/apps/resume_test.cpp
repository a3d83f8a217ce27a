/// Trainings that are killed, interrupted, and resumed: the bits of one that was left alone.
#include <signal.h>
#include <sys/wait.h>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include "apps/gradus/interrupt.h"
#include "gradus/train/checkpoint_directory.h"
#include "tests/apps/command_process.h"
#include "tests/new_process.h"

namespace gradus::command::resume_test {
namespace {
namespace fs = std::filesystem;

/// All that a training has to bring over an interruption: a CNN with batch normalisation and dropout in bfloat16, parts
/// of batches, a schedule, moving averages, decay, what callbacks remember, the order of the data.
constexpr const char* whole_training = R"(
seed = 5
[[layers]]
type = "reshape"
shape = [8, 8, 1]
[[layers]]
type = "conv2d"
filters = 8
kernel_size = 3
padding = "same"
activation = "relu"
[[layers]]
type = "batch_normalization"
[[layers]]
type = "max_pooling2d"
[[layers]]
type = "flatten"
[[layers]]
type = "dropout"
rate = 0.2
[[layers]]
type = "dense"
units = 4
[optimizer]
type = "adamw"
learning_rate = 0.01
global_clipnorm = 1.0
use_ema = true
ema_momentum = 0.9
ema_overwrite_frequency = 25
exclude_from_weight_decay = ["bias"]
[optimizer.schedule]
type = "cosine_decay"
decay_steps = 180
alpha = 0.01
[train]
epochs = 24
batch_size = 32
micro_batch = 8
validate_each_epoch = true
policy = "mixed_bfloat16"
[checkpoints]
every_steps = 5
[callbacks.tensorboard]
histogram_freq = 10
[callbacks.model_checkpoint]
[callbacks.early_stopping]
patience = 1000
)";

class ResumedTraining : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    write_images("train", 256, 8);
    write_images("test", 64, 8);
    write("config.toml", std::string(whole_training) + idx_data);
  }

  /// A process of the command, which writes to said.txt.
  pid_t start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "train");
    arguments.insert(arguments.end(), {"--threads", "1", "--quiet"});
    return start_process(std::move(arguments), [this](posix_spawn_file_actions_t& files) {
      posix_spawn_file_actions_addopen(&files, 1, said().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      posix_spawn_file_actions_adddup2(&files, 1, 2);
    });
  }
  fs::path said() const { return root_ / "said.txt"; }

  static int wait_for(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

  /// The step of the newest checkpoint in a run, 0 without one.
  static std::int64_t newest_step(const fs::path& run) {
    std::int64_t newest = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(run / "checkpoints", none)) {
      const std::string name = entry.path().filename().string();
      const std::size_t at = name.find("-step-");
      if (at != std::string::npos && name.ends_with(".json") && name.starts_with("checkpoint-"))
        newest = std::max<std::int64_t>(newest, std::stoll(name.substr(at + 6)));
    }
    return newest;
  }

  /// Sends a signal once a checkpoint of this step is there; gives how the process ended.
  int end_after(std::int64_t step, pid_t child, const fs::path& run, int signal) const {
    for (int status = 0; newest_step(run) < step; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      if (waitpid(child, &status, WNOHANG) == child) {
        ADD_FAILURE() << "ended by itself before step " << step << ": " << contents(said());
        return status;
      }
    EXPECT_EQ(kill(child, signal), 0);
    return wait_for(child);
  }

  void train_undisturbed() const {
    const int status = wait_for(start({(root_ / "config.toml").string(), "--output", (root_ / "whole").string()}));
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == ok) << contents(said());
  }

  /// Lines without what depends on the clock.
  static std::vector<nlohmann::json> epochs_of(const fs::path& run) {
    std::vector<nlohmann::json> epochs;
    std::istringstream lines(contents(run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      epochs.push_back(nlohmann::json::parse(line));
      epochs.back().erase("seconds");
    }
    return epochs;
  }

  void expect_equal_runs(const fs::path& a, const fs::path& b) const {
    EXPECT_EQ(contents(a / "weights.safetensors"), contents(b / "weights.safetensors"));
    EXPECT_EQ(contents(a / "best.safetensors"), contents(b / "best.safetensors"));
    EXPECT_EQ(epochs_of(a), epochs_of(b));
    EXPECT_EQ(epochs_of(a).size(), 24u);
    std::vector<std::string> damaged;
    const auto one = CheckpointDirectory({.directory = a / "checkpoints"}).read_newest(damaged);
    const auto other = CheckpointDirectory({.directory = b / "checkpoints"}).read_newest(damaged);
    ASSERT_TRUE(one && other && damaged.empty());
    EXPECT_EQ(one->step, 192);
    EXPECT_EQ(one->step, other->step);
    EXPECT_EQ(one->position, other->position);
    EXPECT_EQ(one->random_state, other->random_state);
    ASSERT_EQ(one->arrays.size(), other->arrays.size());
    for (std::size_t i = 0; i < one->arrays.size(); ++i) {
      const auto &x = one->arrays[i], &y = other->arrays[i];
      ASSERT_EQ(x.name, y.name);
      ASSERT_EQ(x.spec, y.spec);
      EXPECT_EQ(std::memcmp(x.data->data(), y.data->data(), static_cast<std::size_t>(bytes_of(x.spec))), 0) << x.name;
    }
  }
};

TEST_F(ResumedTraining, KilledTwiceHasTheBitsOfTheUndisturbed) {
  train_undisturbed();
  const fs::path run = root_ / "run";
  int status = end_after(20, start({(root_ / "config.toml").string(), "--output", run.string()}), run, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_FALSE(fs::exists(run / "weights.safetensors"));
  status = end_after(80, start({"--resume", run.string()}), run, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  status = wait_for(start({"--resume", run.string()}));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == ok) << contents(said());
  expect_equal_runs(root_ / "whole", run);
  EXPECT_GE(std::distance(fs::directory_iterator(run / "tensorboard/train"), fs::directory_iterator()), 3);
}

TEST_F(ResumedTraining, InterruptedItSaysHowToGoOn) {
  train_undisturbed();
  const fs::path run = root_ / "run";
  const int status = end_after(20, start({(root_ / "config.toml").string(), "--output", run.string()}), run, SIGINT);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == interrupted) << contents(said());
  EXPECT_NE(contents(said()).find("gradus train --resume " + run.string()), std::string::npos) << contents(said());
  EXPECT_TRUE(fs::exists(run / "weights.safetensors"));
  EXPECT_LT(newest_step(run), 192);
  const int resumed = wait_for(start({"--resume", run.string()}));
  EXPECT_TRUE(WIFEXITED(resumed) && WEXITSTATUS(resumed) == ok) << contents(said());
  expect_equal_runs(root_ / "whole", run);
}

TEST_F(ResumedTraining, AnotherTrainingIsNotStartedInItsDirectory) {
  const TrainArguments arguments{.config = root_ / "config.toml", .output = root_ / "run", .epochs = 1, .quiet = true};
  ASSERT_EQ(status_of([&] { return train(arguments); }), ok) << errors_;
  EXPECT_EQ(status_of([&] { return train(arguments); }), failed);
  expect_error("--resume " + (root_ / "run").string());
  const TrainArguments more{.config = {}, .resume = root_ / "run", .epochs = 2, .quiet = true};
  EXPECT_EQ(status_of([&] { return train(more); }), ok) << errors_;
  EXPECT_EQ(epochs_of(root_ / "run").size(), 2u);
  const std::string before = contents(root_ / "run/config.toml");
  TrainArguments other{.config = {}, .resume = root_ / "run", .epochs = 3, .settings = {"optimizer.amsgrad=true"}};
  EXPECT_EQ(status_of([&] { return train(other); }), failed);  // its slots are in no checkpoint
  EXPECT_EQ(contents(root_ / "run/config.toml"), before);
  EXPECT_EQ(status_of([&] { return train({.config = root_ / "config.toml", .resume = root_ / "run"}); }), usage);
  EXPECT_EQ(status_of([&] { return train({}); }), usage);
  EXPECT_EQ(status_of([&] { return train({.config = {}, .resume = root_ / "nowhere"}); }), failed);
}

TEST_F(ResumedTraining, WithoutAWholeCheckpointIsNoStartFromTheBeginning) {
  TrainArguments arguments{.config = root_ / "config.toml", .output = root_ / "run", .epochs = 1, .quiet = true};
  ASSERT_EQ(status_of([&] { return train(arguments); }), ok) << errors_;
  const std::string weights = contents(root_ / "run/weights.safetensors");
  for (const auto& entry : fs::directory_iterator(root_ / "run/checkpoints"))
    if (entry.path().extension() == ".safetensors") fs::resize_file(entry.path(), 20);
  EXPECT_EQ(status_of([&] { return train({.config = {}, .resume = root_ / "run", .epochs = 2}); }), bad_data);
  expect_error("run: none of its checkpoints is whole");
  EXPECT_EQ(contents(root_ / "run/weights.safetensors"), weights);
  fs::remove_all(root_ / "run/checkpoints");  // as where it was killed before the first one
  EXPECT_EQ(status_of([&] { return train({.config = {}, .resume = root_ / "run", .quiet = true}); }), ok) << errors_;
}

TEST(Interrupt, TheSecondOneEndsTheProcess) {
  GRADUS_IN_NEW_PROCESS();
  EXPECT_EXIT(
      {
        const InterruptGuard guard;
        if (guard.asked()) std::exit(1);
        std::raise(SIGINT);
        if (!guard.asked()) std::exit(2);
        std::raise(SIGINT);
        std::exit(3);
      },
      testing::ExitedWithCode(interrupted), "");
}

}  // namespace
}  // namespace gradus::command::resume_test
