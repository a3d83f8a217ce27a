/// A directory of checkpoints has one writer at a time: another process is refused before its first step, as long as
/// the first one lives.
#include "gradus/train/checkpoint_writer.h"
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::checkpoint_writer_test {
namespace {

class CheckpointWriterTest : public testing::Test {
 protected:
  CheckpointWriterTest() : root_(std::filesystem::temp_directory_path() / text("gradus_writer_", getpid())) {
    std::filesystem::remove_all(root_);
  }
  ~CheckpointWriterTest() override {
    if (other_ > 0) end_other();
    std::filesystem::remove_all(root_);
  }

  /// A process that holds the directory until end_other().
  void start_other() {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    other_ = fork();
    if (other_ == 0) {
      const auto held = hold_as_writer(root_);
      (void)!write(ready[1], "r", 1);
      for (;;) pause();
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]), close(ready[1]);
  }
  /// Kills the process without a request to end.
  void end_other() {
    kill(other_, SIGKILL);
    waitpid(std::exchange(other_, 0), nullptr, 0);
  }

  History train() const {
    Sequential model{Dense(1)};
    SGD optimizer;
    const auto rows = data::from_tensor_slices(ones({4, 2}), ones({4, 1})).batch(2);
    return fit(model, optimizer, MeanSquaredError(), rows,
               {.callbacks = {Callback{.on_step_end = [&](const StepLog&) { ++steps_; }}},
                .checkpoints = CheckpointOptions{.directory = root_},
                .verbose = false});
  }

  const std::filesystem::path root_;
  pid_t other_ = 0;
  mutable int steps_ = 0;
};

TEST_F(CheckpointWriterTest, AnotherProcessIsRefusedUntilTheFirstHasEnded) {
  start_other();
  const std::string said = error_of<Unavailable>([&] { train(); });
  expect_says(said, root_.string());
  expect_says(said, text("process ", other_, " on "));
  expect_says(said, "a directory of its own");
  EXPECT_EQ(steps_, 0);
  Sequential model{Dense(1)};
  model.build({f32, {any_size, 2}});
  SGD optimizer;
  Checkpoints by_hand({.directory = root_}, model, optimizer);
  EXPECT_FALSE(by_hand.restore());  // reading needs no lock
  expect_says(error_of<Unavailable>([&] { by_hand.save(1); }), "another training does");
  end_other();
  train();
  EXPECT_EQ(steps_, 2);
}

TEST_F(CheckpointWriterTest, OneProcessSharesIt) {
  const auto first = hold_as_writer(root_), again = hold_as_writer(root_ / ".");
  EXPECT_EQ(first, again);
  train();
  EXPECT_EQ(steps_, 2);
}

TEST_F(CheckpointWriterTest, ItIsFreeBehindTheTraining) {
  train();
  start_other();
  ASSERT_GT(other_, 0);
  expect_says(error_of<Unavailable>([&] { train(); }), "another training does");
}

TEST_F(CheckpointWriterTest, NothingIsLeftOfATrainingWithoutCheckpoints) {
  hold_as_writer(root_);
  EXPECT_FALSE(std::filesystem::exists(root_));
  train();
  EXPECT_TRUE(std::filesystem::exists(root_));
  EXPECT_FALSE(std::filesystem::exists(root_ / ".writer"));
}

TEST_F(CheckpointWriterTest, WhereNothingCanBeWrittenIsSaidBeforeTheFirstStep) {
  std::ofstream(root_) << "a file in its place";
  const std::string said = error_of<Error>([&] { train(); });
  expect_says(said, root_.string());
  EXPECT_EQ(steps_, 0);
}

}  // namespace
}  // namespace gradus::checkpoint_writer_test
