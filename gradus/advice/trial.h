/// Trial: a copy of a training that runs some steps with a setting, and gives their seconds, bytes and losses.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>
#include "gradus/advice/training.h"
#include "gradus/base/rooms.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/nn/policy.h"
#include "gradus/profile/report.h"
#include "gradus/train/fit.h"
#include "gradus/train/step.h"

namespace gradus {

/// All that levers change.
struct detail::Setting {
  FunctionOptions function = {};
  std::int64_t micro_batch = 0;
  std::optional<Strategy> strategy = {};
  int threads = 1;                         // that compute
  PrefetchOptions ahead = {.buffers = 0};  // of the data set
  PipelineChanges data = {};               // of its stages
  std::optional<Policy> policy = {};       // of the model; none: its own
  bool without_dead_channels = false;
};
using detail::Setting;

/// The first steps of every trial, whose losses are compared.
inline constexpr int compared_steps = 3;
/// All of the first steps: in those behind, programs that come back are compiled.
inline constexpr int first_steps = 6;

class Trial {
 public:
  using Clock = std::function<double()>;
  /// Copies the training and runs its first steps: compared_steps, and some in which programs are compiled; fewer, but
  /// at least one, if it is later than `deadline` after one of them. `batch_rows`: rows of a batch as it is, 0: not
  /// known. Throws a training's errors. `training` must outlive it.
  Trial(const Training& training, const Setting& setting, const Clock& clock, double deadline, std::int64_t batch_rows);

  /// Seconds a step of `steps` steps, reading their batches included; of another size of batches, for as many rows as
  /// batch_rows.
  double run(int steps);
  /// The parts of the time of some steps.
  ProfileReport profiled(int steps);

  const Setting& setting() const { return setting_; }
  /// The losses of the first steps.
  const std::vector<double>& losses() const { return losses_; }
  /// True if the first steps are done, so that a further one is one of many.
  bool is_warm() const { return is_warm_; }
  /// The most bytes that were alive at once in the first steps, above those that lived before.
  std::size_t bytes() const { return bytes_; }
  /// The least of the first steps; of the making of the trial, these included.
  double step_seconds() const { return step_seconds_; }
  double making_seconds() const { return making_seconds_; }
  /// The report on the step.
  Explanation explain() const { return step_->explain(); }
  /// The bytes of the trainable variables.
  std::int64_t trainable_bytes() const;

 private:
  class Scopes;
  void begin_reading();
  void advance();
  void take_first_steps(double deadline);
  void fill_caches(double deadline);
  const Trial::Clock clock_;
  const Setting setting_;
  const std::int64_t batch_rows_;
  std::uint64_t random_;
  TrainingCopy copy_;
  std::optional<Pipeline> dataset_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<Reading> reading_;
  Position next_;  // in the data
  std::vector<double> losses_;
  bool is_warm_ = false;
  std::size_t bytes_ = 0;
  double step_seconds_ = 0, making_seconds_ = 0;
};

}  // namespace gradus
