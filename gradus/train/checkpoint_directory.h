/// The files of checkpoints. A checkpoint is a list (`checkpoint-000007-step-42.json`) and the arrays that it names, in
/// safetensors files beside it (`checkpoint-000007-step-42.0.safetensors`, ...). The arrays are on the disk before the
/// list is put in its place. So a list that exists and agrees with its checksums is a whole checkpoint.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "gradus/base/version.h"
#include "gradus/data/pipeline.h"
#include "gradus/formats/safetensors.h"

namespace gradus {

struct CheckpointContents {
  std::int64_t step = 0;
  Position position = {};
  std::uint64_t random_state = 0;
  std::optional<std::int64_t> micro_shards = {};  // into how many a batch was divided; 0: it was whole
  int contract = numeric_contract;                // the numeric contract of its values
  std::vector<NamedArray> arrays = {};            // with different names
  /// The program's statement of the training; empty in checkpoints of versions that did not keep it.
  std::vector<std::pair<std::string, std::string>> said = {};
  std::optional<std::int64_t> stream = {};  // if steps are counted: elements of all passes so far
};

/// Makes a directory of checkpoints. True if it did not exist. Unavailable if it cannot be made.
bool make_checkpoint_directory(const std::filesystem::path& directory);
/// Throws for checkpoints that cannot be written into the directory: ResourceExhausted for a lack of room, by the
/// number of the system's error, otherwise Unavailable. The reason is the system's, or `why`.
[[noreturn]] void fail_to_write_checkpoints(const std::filesystem::path& directory, int problem, std::string why = {});

/// A directory that several processes may use: a writer has it alone, a reader keeps writers away.
class CheckpointDirectory {
 public:
  struct Options {
    std::filesystem::path directory;
    int max_to_keep = 0;  // 0: all
    std::size_t max_shard_bytes = 0;
  };
  explicit CheckpointDirectory(Options options) : options_(std::move(options)) {}

  /// Writes a checkpoint and returns when it is on the disk. Then the oldest beyond max_to_keep are removed. A failure
  /// leaves no trace: ResourceExhausted on a full disk, Unavailable where it cannot be written.
  void write(const CheckpointContents& contents) const;
  /// Makes the directory, and writes a trial file: errors as of write(), before any time is spent. `bytes`: the least
  /// size of a checkpoint.
  void require_writable(std::int64_t bytes) const;
  /// Reads the newest whole checkpoint, with all checksums compared; empty if there is none. `damaged` gets the reason
  /// why each newer one was skipped.
  std::optional<CheckpointContents> read_newest(std::vector<std::string>& damaged) const;

 private:
  Options options_;
};

}  // namespace gradus
