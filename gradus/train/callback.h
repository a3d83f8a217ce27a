/// Callbacks: what is called before, during and after a training, and may stop it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/base/ranges.h"
#include "gradus/gradients/loss.h"
#include "gradus/nn/module.h"
#include "gradus/optim/optimizer.h"

namespace gradus {

/// Reading the loss waits for the step.
struct StepLog {
  std::int64_t step;  // updates so far, those of earlier trainings with this optimizer included
  Loss loss;
  bool& stop;
};

struct EpochLog {
  int epoch;    // from 0
  double loss;  // the mean over the epoch's examples
  std::optional<double> validation_loss;
  std::vector<std::pair<std::string, double>> metrics;  // "mean_absolute_error", "validation_mean_absolute_error"
  double seconds;                                       // of training, without validation
  Module& model;
  Optimizer& optimizer;
  bool& stop;
};

/// Once, before anything is restored from a checkpoint.
struct TrainBegin {
  Module& model;  // built
  Optimizer& optimizer;
  int epochs;
  bool fast_dev_run;  // a trial: nothing shall be written
};
struct EpochBegin {
  int epoch;  // of a resumed training the first one is not 0
  Module& model;
  Optimizer& optimizer;
  bool& stop;
};
/// After the last epoch, also of a training that was stopped.
struct TrainEnd {
  Module& model;
  Optimizer& optimizer;
};

/// Any of these may be left out. A callback that remembers something starts over in on_train_begin, so that one serves
/// several trainings; what it lists as `variables` is saved in checkpoints and is there again when a training resumes.
class Callback {
 public:
  std::function<void(EpochLog)> on_epoch_end = {};
  std::function<void(StepLog)> on_step_end = {};
  std::function<void(TrainBegin)> on_train_begin = {};
  std::function<void(EpochBegin)> on_epoch_begin = {};
  std::function<void(TrainEnd)> on_train_end = {};
  /// The loss was not finite: with such a callback the training ends here, without the error being thrown.
  std::function<void(const Diverged&)> on_diverged = {};
  std::function<Variables()> variables = {};  // asked after on_train_begin
};

/// Whether less or more of what is watched is better; automatic: more of what is called accuracy, precision, recall or
/// auc, less of anything else.
enum class MonitorMode { automatic, min, max };

struct EarlyStoppingOptions {
  int patience = 0;  // that many epochs in a row without an improvement end the training, at least one
  double min_delta = 0;
  bool restore_best_weights = true;
  std::string monitor = {};  // "loss", "validation_loss", or a metric; empty: validation_loss, else loss
  MonitorMode mode = MonitorMode::automatic;
  std::optional<double> baseline = {};  // epochs that are not better than this count as without an improvement
  int start_from_epoch = 0;             // epochs before it are not looked at
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("patience min_delta start_from_epoch"), Allowed::finite("baseline")};
  }
};
/// Ends a training that gets no better. With restore_best_weights the model has the weights of its best epoch at the
/// end of the training, however that came. InvalidArgument for a number that is not there.
Callback early_stopping(EarlyStoppingOptions options = {});

}  // namespace gradus
