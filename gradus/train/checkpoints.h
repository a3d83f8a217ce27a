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
#include "gradus/train/history.h"
#include "gradus/train/training_facts.h"

namespace gradus {

/// Options of Checkpoints.
struct CheckpointOptions {
  std::filesystem::path directory;  // created if it does not exist
  int max_to_keep = 3;              // older checkpoints are removed; 0: all are kept
  std::int64_t every_steps = 0;     // for fit: also after every n updates, in total; 0: only at the ends of epochs
  std::size_t max_shard_bytes = 2 * GiB;  // larger contents are divided among several files
  detail::Given given = {};               // never set: marks options of fit that are left out
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("max_to_keep every_steps"), Allowed::positive("max_shard_bytes")};
  }

  /// False only for the default of FitOptions.
  explicit operator bool() const { return detail::is_given(*this); }
  bool operator==(const CheckpointOptions&) const = default;
};

/// Result of Checkpoints::restore.
struct Restored {
  std::int64_t step;  // as given to save
  Position position;  // the next element: continue with dataset.from(restored->position)
  /// The number of shards into which fit divided batches; 0: they were whole. Empty if it is not recorded.
  std::optional<std::int64_t> micro_shards = {};
};

/// Saves and restores a training. A checkpoint holds the variables of the model with their masks, its vocabularies, the
/// variables of the optimizer, the state of random numbers, the step, and the position in the data. It is written under
/// a temporary name, synced and renamed, and has checksums. A process that is killed while saving leaves the previous
/// checkpoint. Only one of several processes with the same directory writes: from its first checkpoint on it holds the
/// directory until this object is gone, and others cannot save. It refers to the model and the optimizer. Not for
/// several threads at once.
///
/// A checkpoint keeps the program's statement of the optimizer and the precision. If the restoring program states
/// something else, the rule of fit holds (docs/from-tensorflow.md): rates, decays and other numbers are the program's,
/// state is the checkpoint's, and a notice gives the origin of each. A rate that was set by set_learning_rate after the
/// first step is state.
class Checkpoints {
 public:
  /// InvalidArgument for invalid options.
  Checkpoints(CheckpointOptions options, Module& model, Optimizer& optimizer);
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;
  /// Waits for the checkpoint that is being saved. A failure becomes a notice.
  ~Checkpoints();

  /// Saves a checkpoint and returns when it is on the disk. `next` is the position in the data: iterator.position().
  /// ResourceExhausted on a full disk, Unavailable if it cannot be written, and if another process writes; earlier
  /// checkpoints still exist. InvalidArgument for a model that is not built.
  void save(std::int64_t step, Position next = {});
  /// Saves a checkpoint in a thread of its own and returns at once. The values are those of this moment, whatever is
  /// assigned meanwhile. One at a time: it waits for the previous one, and throws its error.
  void save_in_background(std::int64_t step, Position next = {});
  /// Waits until nothing is being saved. Throws the error of saving.
  void wait();
  /// Restores the newest whole checkpoint; empty if there is none. One from before the first step resets the optimizer.
  /// Model and optimizer take all of its values, or keep theirs; a learning rate stays if the program states another
  /// one than the saving program did. Damaged checkpoints are skipped, with a notice. InvalidArgument, naming the first
  /// variable, if model or optimizer are not those that were saved; a model must be built.
  std::optional<Restored> restore();

  // For the rooms of the library.
  /// The additions of fit to a checkpoint.
  struct Notes {
    std::optional<std::int64_t> stream = {};
    History history = {};
  };
  /// A restored training, with all differences between program and checkpoint.
  struct Resumed {
    Restored restored;
    Notes notes;
    detail::TrainingFacts said = {};  // the saving program's statement; empty: unknown
    std::vector<detail::FactDifference> differences = {};
    std::vector<std::string> without_state = {};  // parts of the program that the checkpoint has no state of
    std::vector<std::string> unused = {};         // parts of the checkpoint that the program does not have
    std::string contract = {};  // a notice that another numeric contract continues the bits; empty: the same one
  };
  /// As restore(), without its lines about the training. `said`: the program's facts besides those of model and
  /// optimizer. `check` throws before anything is changed. The program's rates are those set last before the training.
  std::optional<Resumed> resume(const detail::TrainingFacts& said, const std::function<void(const Resumed&)>& check);
  /// Sets the facts and the notes of later checkpoints.
  void say(detail::TrainingFacts said);
  void note(Notes notes);
  /// Throws as save() would, if the directory cannot be made or written, or has no room.
  void require_writable() const;
  /// Later saves record this number of a batch's shards.
  void set_micro_shards(std::int64_t count);
  /// Values are read by `read`, such as that of a variable of which each process has a part.
  void read_by(std::function<Tensor(const Variable&)> read);
  /// Adds variables that are saved under `name`, and restored if the file has them with the same specs. The function is
  /// called each time.
  void include(std::string name, std::function<Variables()> variables);
  /// As include, for the state of callbacks; parts without a partner are named in Resumed. `older_name`: its name in
  /// checkpoints of versions that numbered callbacks.
  void include_callback(std::string name, std::function<Variables()> variables, std::string older_name);

 private:
  struct State;
  std::optional<Resumed> restore(const detail::TrainingFacts& said, const std::function<void(const Resumed&)>& check);
  std::unique_ptr<State> state_;
};

}  // namespace gradus
