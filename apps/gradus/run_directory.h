/// The directory of one training run: config.toml, metrics.jsonl, weights.safetensors, report.html. Every file appears
/// whole or not at all.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gradus::command {

class RunDirectory {
 public:
  /// Makes it. Unavailable says why that is not possible.
  explicit RunDirectory(std::filesystem::path directory);

  const std::filesystem::path& path() const { return directory_; }
  std::filesystem::path config() const { return directory_ / "config.toml"; }
  std::filesystem::path weights() const { return directory_ / "weights.safetensors"; }
  std::filesystem::path report() const { return directory_ / "report.html"; }

  void write(const std::filesystem::path& file, const std::string& contents) const;
  /// One line more in metrics.jsonl.
  void add_metrics(nlohmann::json line);

 private:
  std::filesystem::path directory_;
  std::string metrics_;
};

/// runs/<name>-<local time>
std::filesystem::path default_run_directory(const std::filesystem::path& config);

}  // namespace gradus::command
