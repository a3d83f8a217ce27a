/// Checkpoints: everything that a training needs to continue bit for bit, in files that are complete or absent.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/given.h"
#include "gradus/base/ranges.h"
#include "gradus/data/pipeline.h"
#include "gradus/nn/module.h"
#include "gradus/optim/optimizer.h"
#include "gradus/tensor/memory.h"

namespace gradus {

/// Options of Checkpoints.
struct CheckpointOptions {
  std::filesystem::path directory;        // created if it does not exist
  int max_to_keep = 3;                    // older checkpoints are removed; 0: all are kept
  std::int64_t every_steps = 0;           // for fit: also after each so many updates; 0: only at the ends of epochs
  std::size_t max_shard_bytes = 2 * GiB;  // larger contents are divided among several files
  detail::Given given = {};               // never set: as an option of fit they are left out by default
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("max_to_keep every_steps"), Allowed::positive("max_shard_bytes")};
  }

  // For the rooms of the library.
  /// True unless they are those of FitOptions that nobody has given. The rest is as of a std::optional.
  explicit operator bool() const { return given.value; }
  bool has_value() const { return given.value; }
  CheckpointOptions* operator->() { return this; }
  const CheckpointOptions* operator->() const { return this; }
  const CheckpointOptions& operator*() const { return *this; }
  void reset() { given.value = false; }
};

/// Result of Checkpoints::restore.
struct Restored {
  std::int64_t step;  // as given to save
  Position position;  // the next element: continue with dataset.from(restored->position)
  /// Into how many shards fit has divided batches; 0: they were whole. Empty where nobody has said it.
  std::optional<std::int64_t> micro_shards = {};
};

/// Saves and restores a training. A checkpoint holds the variables of the model with their masks, those of the
/// optimizer, the state of random numbers, the step, and the position in the data. It is written beside its place,
/// synced, renamed, and carries checksums. A process that is killed while saving leaves the previous checkpoint.
/// Several processes may use one directory. It refers to the model and the optimizer. Not for several threads at once.
class Checkpoints {
 public:
  /// InvalidArgument for invalid options.
  Checkpoints(CheckpointOptions options, Module& model, Optimizer& optimizer);
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;
  /// Waits for the checkpoint that is being saved. A failure is reported on stderr.
  ~Checkpoints();

  /// Saves a checkpoint and returns when it is on the disk. `next` is the position in the data: iterator.position().
  /// ResourceExhausted on a full disk, Unavailable where it cannot be written; earlier checkpoints still exist.
  /// InvalidArgument for a model that is not built.
  void save(std::int64_t step, Position next = {});
  /// Saves a checkpoint in a thread of its own and returns at once. The values are those of this moment, whatever is
  /// assigned meanwhile. One at a time: it waits for the previous one, and throws its error.
  void save_in_background(std::int64_t step, Position next = {});
  /// Waits until nothing is being saved. Throws the error of saving.
  void wait();
  /// Restores the newest whole checkpoint; empty if there is none. One from before the first step resets the optimizer.
  /// Model and optimizer take all of its values, or keep theirs. Damaged checkpoints are skipped, with a line on
  /// stderr. InvalidArgument, naming the first variable, if model or optimizer are not those that were saved; a model
  /// must be built.
  std::optional<Restored> restore();

  // For the rooms of the library.
  /// What is saved from now on says so of the shards of a batch.
  void set_micro_shards(std::int64_t count);
  /// Values are read by `read`, such as that of a variable of which each process has a part.
  void read_by(std::function<Tensor(const Variable&)> read);
  /// Adds variables that are saved under `name`, and restored if the file has them with the same specs. The function is
  /// called each time.
  void include(std::string name, std::function<Variables()> variables);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradus
