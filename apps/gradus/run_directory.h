/// The directory of one training run: config.toml, metrics.jsonl, data.json, checkpoints/, weights.safetensors,
/// report.html, and of a text vocabulary.json. Every file appears whole or not at all.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gradus::command {

class RunDirectory {
 public:
  /// Makes the directory. Unavailable gives the reason if that is not possible. `is_new`: it was made for this run just
  /// now.
  explicit RunDirectory(std::filesystem::path directory, bool is_new = false);

  const std::filesystem::path& path() const { return directory_; }
  std::filesystem::path config() const { return directory_ / "config.toml"; }
  std::filesystem::path weights() const { return directory_ / "weights.safetensors"; }
  std::filesystem::path report() const { return directory_ / "report.html"; }
  std::filesystem::path metrics() const { return directory_ / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return directory_ / checkpoints_name; }
  std::filesystem::path data() const { return directory_ / "data.json"; }
  std::filesystem::path vocabulary() const { return directory_ / "vocabulary.json"; }
  static constexpr const char* checkpoints_name = "checkpoints";

  void write(const std::filesystem::path& file, const std::string& contents) const;
  /// True if it did not exist before.
  bool is_made_here() const { return is_made_here_; }

 private:
  std::filesystem::path directory_;
  bool is_made_here_ = false;
};

/// A run directory for one process alone, from when this is made until it is gone or the process is, however that ends.
class RunClaim {
 public:
  /// Unavailable if another process has it.
  explicit RunClaim(const RunDirectory& run);
  ~RunClaim();
  RunClaim(const RunClaim&) = delete;
  RunClaim& operator=(const RunClaim&) = delete;

  /// The directory becomes that of a training: Unavailable if one was begun there. A training that ends without a
  /// checkpoint was not.
  void begin_training();
  /// Notes that the training has made a step. A training that began here and made none has its files removed, so that
  /// the next one does not take them for its own; earlier files get their contents back.
  void keep() { kept_ = true; }

 private:
  struct Before {
    std::filesystem::path file;
    std::optional<std::string> contents;  // empty: there was no such file
  };
  void put_back() const noexcept;

  const RunDirectory& run_;
  int descriptor_;
  std::vector<Before> before_;                        // the files that a training writes before its first step
  bool held_ = false, begun_ = false, kept_ = false;  // held: false on file systems without locks
};

/// Makes <runs>/<name>-<local time>, with -2, -3 ... behind it where there is one: runs that begin in one second have
/// one each. Unavailable says why that is not possible.
std::filesystem::path make_run_directory(const std::string& name, const std::filesystem::path& runs = "runs");

}  // namespace gradus::command
