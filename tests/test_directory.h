/// Directories of tests.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>
#include <string>

namespace gradus {

/// A place for a directory of this process, removed before and after; whoever writes there makes it.
class TestDirectory {
 public:
  explicit TestDirectory(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("gradus_" + name + "_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  operator const std::filesystem::path&() const { return path_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// One that is there and empty, named after the test that runs.
class EmptyTestDirectory : public TestDirectory {
 public:
  EmptyTestDirectory() : TestDirectory(name_of_test()) { std::filesystem::create_directories(path()); }

 private:
  static std::string name_of_test() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + "_" + test->name();
    for (char& c : name)
      if (c == '/') c = '_';  // of parametrized tests
    return name;
  }
};

}  // namespace gradus
