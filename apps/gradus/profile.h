/// `gradus profile`: where the time of a training goes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gradus::command {

struct ProfileArguments {
  std::filesystem::path config;
  std::int64_t steps = 50;
  std::optional<std::filesystem::path> data_directory, output, trace, xplane;
  std::optional<std::int64_t> threads;
  std::vector<std::string> settings = {};
  bool json = false;
};
/// Trains some steps and reports where their time went: a table or JSON on stdout, pictures in report.html.
int profile_training(const ProfileArguments& arguments);

CLI::App* add_profile(CLI::App& app, ProfileArguments& arguments);

}  // namespace gradus::command
