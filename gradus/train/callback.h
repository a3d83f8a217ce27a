/// Callbacks: what is called at the ends of steps and epochs, and may stop the training.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
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

class Callback {
 public:
  std::function<void(EpochLog)> on_epoch_end = {};
  std::function<void(StepLog)> on_step_end = {};
};

struct EarlyStoppingOptions {
  int patience = 0;  // that many epochs in a row without an improvement end the training, at least one
  double min_delta = 0;
  bool restore_best_weights = true;
};
/// Watches validation_loss, else loss.
Callback early_stopping(EarlyStoppingOptions options = {});

}  // namespace gradus
