/// `gradus advise`: changes that would make a training faster or smaller on this machine.
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

struct AdviseArguments {
  std::filesystem::path config;
  double max_seconds = 30;
  bool allow_lower_precision = false;
  std::optional<std::filesystem::path> data_directory = {};
  std::optional<std::int64_t> threads = {};
  std::vector<std::string> settings = {}, levers = {};
  /// The file for a configuration, OUT.toml, and the names of levers that change the learned result and are included
  /// all the same, as "batch_size,precision".
  std::vector<std::string> apply = {};
  bool json = false;
  bool ranks = false;  // the time of 1 to 1024 ranks, too, over the network of `gradus devices --network`, or:
  std::optional<double> latency_us = {}, gigabytes_per_second = {};
};
/// Tries levers on copies: a table or JSON on stdout, and a configuration with the levers that are worth it and keep
/// the learned result, or are named.
int advise_training(const AdviseArguments& arguments);

CLI::App* add_advise(CLI::App& app, AdviseArguments& arguments);

}  // namespace gradus::command
