/// What tests of the command share: a directory of their own, files for it, and what was said.
#pragma once
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>
#include "apps/gradus/commands.h"
#include "gradus/formats/idx.h"
#include "tests/test_directory.h"

namespace gradus::command {

constexpr const char* idx_data =
    "[data]\ntrain_images = \"train_images\"\ntrain_labels = \"train_labels\"\n"
    "test_images = \"test_images\"\ntest_labels = \"test_labels\"\n";

class CommandTest : public testing::Test {
 protected:
  void write(const std::filesystem::path& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << text;
  }
  static std::string contents(const std::filesystem::path& file) {
    std::ostringstream out;
    out << std::ifstream(file, std::ios::binary).rdbuf();
    return out.str();
  }
  /// Square images whose brightest quarter of rows is their label, as `name`_images and `name`_labels.
  void write_images(const std::string& name, int n, int side, unsigned classes = 4) const {
    std::mt19937 engine(static_cast<unsigned>(n));
    std::vector<std::uint8_t> images, labels;
    for (int i = 0; i < n; ++i) {
      labels.push_back(static_cast<std::uint8_t>(engine() % classes));
      for (int p = 0; p < side * side; ++p)
        images.push_back(
            static_cast<std::uint8_t>(p / side / (side / 4) == labels.back() ? 150 + engine() % 100 : engine() % 100));
    }
    write_idx(root_ / (name + "_images"), u8, std::vector<std::int64_t>{n, side, side}, images.data());
    write_idx(root_ / (name + "_labels"), u8, std::vector<std::int64_t>{n}, labels.data());
  }
  /// A configuration for such images of 4 labels: one dense layer, by gradient descent. Ends within [train].
  static std::string dense_training(const std::string& learning_rate, int epochs) {
    return std::string(idx_data) + "[[layers]]\ntype = \"flatten\"\n[[layers]]\ntype = \"dense\"\nunits = 4\n" +
           "[optimizer]\ntype = \"sgd\"\nlearning_rate = " + learning_rate +
           "\n[train]\nepochs = " + std::to_string(epochs) + "\nbatch_size = 32\n";
  }
  /// Runs and gives the exit status, as main does.
  int status_of(const auto& work) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int status = failed;
    try {
      status = work();
    } catch (...) { status = report_failure(); }
    output_ = testing::internal::GetCapturedStdout();
    errors_ = testing::internal::GetCapturedStderr();
    return status;
  }
  void expect_output(const std::string& part) const { EXPECT_NE(output_.find(part), std::string::npos) << output_; }
  void expect_error(const std::string& part) const { EXPECT_NE(errors_.find(part), std::string::npos) << errors_; }

  const EmptyTestDirectory directory_;
  const std::filesystem::path& root_ = directory_.path();
  std::string output_, errors_;
};

}  // namespace gradus::command
