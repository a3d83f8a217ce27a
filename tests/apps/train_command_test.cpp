/// The command from end to end on small files: what it writes, its exit status, and that nothing is half-written.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include "apps/gradus/commands.h"
#include "gradus/formats/idx.h"

namespace gradus::command {
namespace {
namespace fs = std::filesystem;

/// A directory of its own with the four files of a data set whose label is the brightest row, and a configuration.
class TrainCommand : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() / (std::string("gradus_command_") + test->name() + std::to_string(::getpid()));
    fs::create_directories(root_);
    write_split("train", 300, 4);
    write_split("test", 50, 4);
    write_config("1.0");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write_split(const std::string& name, int n, int classes) {
    std::mt19937 engine(static_cast<unsigned>(n));
    std::vector<std::uint8_t> images, labels;
    for (int i = 0; i < n; ++i) {
      labels.push_back(static_cast<std::uint8_t>(engine() % static_cast<unsigned>(classes)));
      for (int p = 0; p < 16; ++p)
        images.push_back(static_cast<std::uint8_t>(p / 4 == labels.back() ? 200 + engine() % 50 : engine() % 50));
    }
    write_idx(root_ / (name + "_images"), u8, std::vector<std::int64_t>{n, 4, 4}, images.data());
    write_idx(root_ / (name + "_labels"), u8, std::vector<std::int64_t>{n}, labels.data());
  }
  void write_config(const std::string& learning_rate) {
    std::ofstream(root_ / "config.toml") << "[data]\ntrain_images = \"train_images\"\ntrain_labels = \"train_labels\"\n"
                                            "test_images = \"test_images\"\ntest_labels = \"test_labels\"\n"
                                            "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 4\n"
                                            "[optimizer]\ntype = \"sgd\"\nlearning_rate = "
                                         << learning_rate << "\n[train]\nepochs = 3\nbatch_size = 32\n";
  }
  TrainArguments arguments() const { return {.config = root_ / "config.toml", .output = root_ / "run", .quiet = true}; }
  static std::string contents(const fs::path& file) {
    std::ostringstream out;
    out << std::ifstream(file).rdbuf();
    return out.str();
  }
  /// Runs and gives the exit status, as main does.
  static int status_of(const auto& work) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int status;
    try {
      status = work();
    } catch (...) { status = report_failure(); }
    output() = testing::internal::GetCapturedStdout();
    errors() = testing::internal::GetCapturedStderr();
    return status;
  }
  static std::string& output() {
    static std::string text;
    return text;
  }
  static std::string& errors() {
    static std::string text;
    return text;
  }
  fs::path root_;
};

TEST_F(TrainCommand, TrainsAndWritesTheRun) {
  ASSERT_EQ(status_of([&] { return train(arguments()); }), ok) << errors();
  EXPECT_TRUE(output().starts_with("test accuracy ")) << output();
  EXPECT_NE(output().find(", report: " + (root_ / "run" / "report.html").string()), std::string::npos) << output();
  const std::string metrics = contents(root_ / "run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);
  EXPECT_NE(contents(root_ / "run/report.html").find("<svg"), std::string::npos);
  EXPECT_NE(contents(root_ / "run/config.toml").find("learning_rate"), std::string::npos);
  const std::string trained = output().substr(0, output().find(','));
  ASSERT_EQ(status_of([&] { return eval({.run = root_ / "run"}); }), ok) << errors();
  EXPECT_EQ(output().substr(0, output().find(',')), trained);
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
  EXPECT_EQ(status_of([&] { return train(arguments()); }), diverged) << errors();
  EXPECT_NE(errors().find("step"), std::string::npos) << errors();
  EXPECT_FALSE(fs::exists(root_ / "run/weights.safetensors"));
}

TEST_F(TrainCommand, BadDataEndsWithThree) {
  write_split("train", 300, 9);  // labels past the four classes
  EXPECT_EQ(status_of([&] { return train(arguments()); }), bad_data) << errors();
  fs::resize_file(root_ / "test_images", 100);
  EXPECT_EQ(status_of([&] { return train(arguments()); }), bad_data) << errors();
  EXPECT_NE(errors().find("test_images"), std::string::npos) << errors();
}

TEST_F(TrainCommand, AMissingFileOrAPlaceThatCannotBeWrittenEndsWithOne) {
  fs::remove(root_ / "test_labels");
  EXPECT_EQ(status_of([&] { return train(arguments()); }), failed) << errors();
  TrainArguments blocked = arguments();
  blocked.output = root_ / "config.toml";  // a file is there
  EXPECT_EQ(status_of([&] { return train(blocked); }), failed);
  EXPECT_NE(errors().find("run directory"), std::string::npos) << errors();
}

TEST_F(TrainCommand, AMistakeInTheConfigurationEndsWithTwo) {
  std::ofstream(root_ / "config.toml", std::ios::app) << "epoch = 3\n";
  EXPECT_EQ(status_of([&] { return train(arguments()); }), usage) << errors();
  EXPECT_NE(errors().find("did you mean `epochs`?"), std::string::npos) << errors();
}

TEST_F(TrainCommand, ListsDevices) {
  EXPECT_EQ(status_of([] { return list_devices(false); }), ok);
  EXPECT_TRUE(output().starts_with("cpu(0)  avx")) << output();
  EXPECT_EQ(status_of([] { return list_devices(true); }), ok);
  EXPECT_TRUE(output().starts_with("[{")) << output();
}

}  // namespace
}  // namespace gradus::command
