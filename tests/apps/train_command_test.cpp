/// The command from end to end on small files: what it writes, its exit status, and that nothing is half-written.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <filesystem>
#include <fstream>
#include <set>
#include "apps/gradus/commands.h"
#include "apps/gradus/run_directory.h"
#include "gradus/backend/instruction_set.h"
#include "gradus/base/error.h"
#include "tests/apps/command_fixture.h"

namespace gradus::command::train_command_test {
namespace {
namespace fs = std::filesystem;

/// A directory of its own with the four files of a data set whose label is the brightest row, and a configuration.
class TrainCommand : public CommandTest {
 protected:
  void SetUp() override {
    write_images("train", 300, 4);
    write_images("test", 50, 4);
    write_config("1.0");
  }
  void write_config(const std::string& learning_rate) { write("config.toml", dense_training(learning_rate, 3)); }
  TrainArguments arguments() const { return {.config = root_ / "config.toml", .output = root_ / "run", .quiet = true}; }
};

TEST_F(TrainCommand, TrainsAndWritesTheRun) {
  ASSERT_EQ(status_of([&] { return train(arguments()); }), ok) << errors_;
  EXPECT_TRUE(output_.starts_with("test accuracy ")) << output_;
  EXPECT_NE(output_.find(", report: " + (root_ / "run" / "report.html").string()), std::string::npos) << output_;
  const std::string metrics = contents(root_ / "run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);
  EXPECT_NE(contents(root_ / "run/report.html").find("<svg"), std::string::npos);
  EXPECT_NE(contents(root_ / "run/config.toml").find("learning_rate"), std::string::npos);
  const std::string trained = output_.substr(0, output_.find(','));
  ASSERT_EQ(status_of([&] { return eval({.run = root_ / "run"}); }), ok) << errors_;
  EXPECT_EQ(output_.substr(0, output_.find(',')), trained);
}

TEST_F(TrainCommand, TheSameSeedGivesTheSameWeights) {
  ASSERT_EQ(status_of([&] { return train(arguments()); }), ok);
  TrainArguments again = arguments();
  again.output = root_ / "again";
  again.threads = 3;
  ASSERT_EQ(status_of([&] { return train(again); }), ok);
  EXPECT_EQ(contents(root_ / "run/weights.safetensors"), contents(root_ / "again/weights.safetensors"));
}

TEST_F(TrainCommand, DivergingEndsWithFour) {
  write_config("1e38");
  EXPECT_EQ(status_of([&] { return train(arguments()); }), diverged) << errors_;
  EXPECT_NE(errors_.find("step"), std::string::npos) << errors_;
  EXPECT_FALSE(fs::exists(root_ / "run/weights.safetensors"));
}

TEST_F(TrainCommand, BadDataEndsWithThree) {
  write_images("train", 300, 4, 9);  // labels past the four classes
  EXPECT_EQ(status_of([&] { return train(arguments()); }), bad_data) << errors_;
  EXPECT_NE(errors_.find((root_ / "train_labels").string() + ": example "), std::string::npos) << errors_;
  EXPECT_NE(errors_.find(" is none of the classes 0 to 3 of the model"), std::string::npos) << errors_;
  fs::resize_file(root_ / "test_images", 100);
  EXPECT_EQ(status_of([&] { return train(arguments()); }), bad_data) << errors_;
  EXPECT_NE(errors_.find("test_images"), std::string::npos) << errors_;
}

TEST_F(TrainCommand, AMissingFileOrAPlaceThatCannotBeWrittenEndsWithOne) {
  fs::remove(root_ / "test_labels");
  EXPECT_EQ(status_of([&] { return train(arguments()); }), failed) << errors_;
  TrainArguments blocked = arguments();
  blocked.output = root_ / "config.toml";  // a file is there
  EXPECT_EQ(status_of([&] { return train(blocked); }), failed);
  EXPECT_NE(errors_.find("run directory"), std::string::npos) << errors_;
}

TEST_F(TrainCommand, AMistakeInTheConfigurationEndsWithTwo) {
  std::ofstream(root_ / "config.toml", std::ios::app) << "epoch = 3\n";
  EXPECT_EQ(status_of([&] { return train(arguments()); }), usage) << errors_;
  EXPECT_NE(errors_.find("did you mean `epochs`?"), std::string::npos) << errors_;
}

TEST_F(TrainCommand, NumbersOnTheCommandLineAreChecked) {
  TrainArguments a = arguments();
  a.epochs = (std::int64_t{1} << 32) + 1;
  EXPECT_EQ(status_of([&] { return train(a); }), usage);
  EXPECT_NE(errors_.find("`train.epochs` is 4294967297; expected 1 to 1000000"), std::string::npos) << errors_;
  EXPECT_FALSE(fs::exists(root_ / "run"));
}

TEST_F(TrainCommand, RunsOfOneSecondHaveADirectoryEach) {
  std::set<fs::path> made;
  for (int i = 0; i < 3; ++i) made.insert(make_run_directory("config", root_ / "runs"));
  EXPECT_EQ(made.size(), 3u);
  for (const fs::path& directory : made) EXPECT_TRUE(fs::is_directory(directory)) << directory;
  EXPECT_THROW(make_run_directory("config", root_ / "config.toml"), Unavailable);
}

TEST_F(TrainCommand, ListsDevices) {
  EXPECT_EQ(status_of([] { return list_devices(false, false); }), ok);
  EXPECT_TRUE(output_.starts_with(text("cpu:0  ", instruction_set()))) << output_;
  expect_output("\ntarget x86_64-linux-gnu  avx2, avx512  ");
  expect_output("\ntarget aarch64-linux-gnu  neon");
  EXPECT_EQ(status_of([] { return list_devices(true, false); }), ok);
  EXPECT_TRUE(output_.starts_with("[{")) << output_;
  expect_output(R"("target":"aarch64-linux-gnu")");
}

}  // namespace
}  // namespace gradus::command::train_command_test
