/// Checkpoints: all that a training needs to go on bit for bit, in files that are complete or absent.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/data/pipeline.h"
#include "gradus/nn/module.h"
#include "gradus/optim/optimizer.h"
#include "gradus/tensor/memory.h"

namespace gradus {

struct CheckpointOptions {
  std::filesystem::path directory;        // made if it is not there
  int max_to_keep = 3;                    // the oldest beyond are removed; 0: all are kept
  std::int64_t every_steps = 0;           // of fit: also after each so many updates; 0: at the ends of epochs alone
  std::size_t max_shard_bytes = 2 * GiB;  // more than that is divided among several files
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("max_to_keep every_steps"), Allowed::positive("max_shard_bytes")};
  }
};

struct Restored {
  std::int64_t step;
  Position position;  // of the element that comes next: go on with dataset.from(restored->position)
};

/// A checkpoint holds the variables of the model with their masks, those of the optimizer, the state of random numbers,
/// the step and the place in the data. It is written beside its place, synced, renamed, and carries checksums; whoever
/// is killed while saving leaves the checkpoint before. Several processes may use one directory. A model and an
/// optimizer belong to it by reference. Not for several threads at once.
class Checkpoints {
 public:
  /// InvalidArgument for options that make no sense.
  Checkpoints(CheckpointOptions options, Module& model, Optimizer& optimizer);
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;
  /// Waits for what is being saved; says on stderr if that fails.
  ~Checkpoints();

  /// Returns when the checkpoint is on the disk. `next` is the place in the data: iterator.position().
  /// ResourceExhausted on a full disk, Unavailable where it cannot be written: those before are still there.
  /// InvalidArgument for a model that is not built.
  void save(std::int64_t step, Position next = {});
  /// Returns at once: the values are those of now, whatever is assigned meanwhile, and are written by a thread of their
  /// own. One at a time: waits for the one before. Throws what went wrong there.
  void save_in_background(std::int64_t step, Position next = {});
  /// Until nothing is being saved. Throws what went wrong there.
  void wait();
  /// The newest whole one, or nothing. One of before the first step starts the optimizer anew. Model and optimizer take
  /// its values all at once, or keep theirs. What is damaged is passed over, with a line on stderr. InvalidArgument,
  /// naming the first variable, if model or optimizer are not those that were saved; a model must be built.
  std::optional<Restored> restore();

  // For the rooms of the library.
  /// Further variables, asked for at each time, that are saved under `name` and restored where the file has them in
  /// their specs.
  void include(std::string name, std::function<Variables()> variables);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradus
