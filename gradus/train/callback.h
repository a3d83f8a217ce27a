/// Callbacks: functions that are called before, during and after a training, and may stop it.
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

/// Data of on_step_end. Reading the loss waits for the step.
struct StepLog {
  std::int64_t step;  // updates so far, including those of earlier trainings with this optimizer
  Loss loss;          // loss of the batch
  bool& stop;         // set it to end the training
};

/// Data of on_epoch_end.
struct EpochLog {
  int epoch;                                            // from 0
  double loss;                                          // mean over the epoch's examples
  std::optional<double> validation_loss;                // mean over the validation set; empty without one
  std::vector<std::pair<std::string, double>> metrics;  // "mean_absolute_error", "validation_mean_absolute_error"
  double seconds;                                       // seconds of training, without validation
  Module& model;                                        // being trained
  Optimizer& optimizer;                                 // the optimizer in use
  bool& stop;                                           // set it to end the training
  std::vector<std::string> absent = {};                 // numbers that only epochs with a validation have
  bool has_loss = true;                                 // false: a user's training step gives no "loss"
};

/// Data of on_train_begin, which is called once, before anything is restored from a checkpoint.
struct TrainBegin {
  Module& model;         // built
  Optimizer& optimizer;  // the optimizer in use
  int epochs;            // number of epochs, as in FitOptions
  bool fast_dev_run;     // a trial: write no files
};
/// Data of on_epoch_begin.
struct EpochBegin {
  int epoch;             // from 0; the first epoch of a resumed training is not 0
  Module& model;         // being trained
  Optimizer& optimizer;  // the optimizer in use
  bool& stop;            // set it to end the training
};
/// Data of on_train_end, which is called after the last epoch, also if the training was stopped.
struct TrainEnd {
  Module& model;         // the trained model
  Optimizer& optimizer;  // the optimizer in use
};

/// Data of on_test_begin and on_test_end, which are called before and after the validation set is read, also if that
/// fails.
struct TestLog {
  Module& model;         // being trained
  Optimizer& optimizer;  // the optimizer in use
};

/// A set of functions, each of which may be left out. A callback with state resets it in on_train_begin, so that it
/// serves several trainings. The Variables that `variables` lists are saved in checkpoints, and restored when a
/// training resumes, by the callback of the same name; callbacks of one name are matched in their order.
class Callback {
 public:
  std::function<void(EpochLog)> on_epoch_end = {};      // after each epoch
  std::function<void(StepLog)> on_step_end = {};        // after each step
  std::function<void(TrainBegin)> on_train_begin = {};  // before the first epoch
  std::function<void(EpochBegin)> on_epoch_begin = {};  // before each epoch
  std::function<void(TrainEnd)> on_train_end = {};      // after the last epoch
  std::function<void(TestLog)> on_test_begin = {};      // before the validation set is read
  std::function<void(TestLog)> on_test_end = {};        // after it
  /// Called if the loss was not finite. The training then ends, and the error is not thrown.
  std::function<void(const Diverged&)> on_diverged = {};
  std::function<Variables()> variables = {};  // called after on_train_begin
  std::string name = "callback";              // in checkpoints, such as "early_stopping of accuracy"
};

/// Direction of the watched number: less is better, or more. automatic: more for names with accuracy, precision, recall
/// or auc, less for all others.
enum class MonitorMode { automatic, min, max };

/// Options of early_stopping.
struct EarlyStoppingOptions {
  int patience = 0;                   // consecutive epochs without an improvement that end the training, at least one
  double min_delta = 0;               // smallest change that counts as an improvement
  bool restore_best_weights = false;  // at the end the model gets the weights of its best epoch
  std::string monitor = {};           // "loss", "validation_loss", or a metric; empty: validation_loss, else loss
  MonitorMode mode = MonitorMode::automatic;  // direction of improvement
  std::optional<double> baseline = {};        // epochs that are not better than this count as without improvement
  int start_from_epoch = 0;                   // epochs before it are ignored
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("patience min_delta start_from_epoch"), Allowed::finite("baseline")};
  }
};
/// Ends a training that does not improve any more. With restore_best_weights the model has the weights of its best
/// epoch after the training, for any reason of its end. InvalidArgument if the watched number does not exist.
Callback early_stopping(EarlyStoppingOptions options = {});

}  // namespace gradus
