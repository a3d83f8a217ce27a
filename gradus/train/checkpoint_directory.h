/// The files of checkpoints. One checkpoint is a list (`checkpoint-000007-step-42.json`) and the arrays that it names,
/// in safetensors files beside it (`checkpoint-000007-step-42.0.safetensors`, ...). Arrays are on the disk before the
/// list is put in its place, so a list that is there and agrees with its checksums is a whole checkpoint.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>
#include "gradus/data/pipeline.h"
#include "gradus/formats/safetensors.h"

namespace gradus {

struct CheckpointContents {
  std::int64_t step = 0;
  Position position = {};
  std::uint64_t random_state = 0;
  std::vector<NamedArray> arrays = {};  // names differ
};

/// Several processes may use one directory: who writes has it alone, who reads keeps writers away.
class CheckpointDirectory {
 public:
  struct Options {
    std::filesystem::path directory;
    int max_to_keep = 0;  // 0: all
    std::size_t max_shard_bytes = 0;
  };
  explicit CheckpointDirectory(Options options) : options_(std::move(options)) {}

  /// Returns when the checkpoint is on the disk; then the oldest beyond max_to_keep are removed. What fails leaves no
  /// trace: ResourceExhausted on a full disk, Unavailable where it cannot be written.
  void write(const CheckpointContents& contents) const;
  /// The newest whole one, all checksums compared; nothing if there is none. `damaged` is told why each newer one was
  /// passed over.
  std::optional<CheckpointContents> read_newest(std::vector<std::string>& damaged) const;

 private:
  Options options_;
};

}  // namespace gradus
