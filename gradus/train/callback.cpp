/// Early stopping.
#include "gradus/train/callback.h"
#include <limits>
#include <memory>

namespace gradus {
namespace {

class EarlyStopping {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options) : options_(options) {}

  void on_epoch_end(const EpochLog& log) {
    if (log.epoch <= last_epoch_) *this = EarlyStopping(options_);  // another training
    last_epoch_ = log.epoch;
    const double loss = log.validation_loss.value_or(log.loss);
    if (loss < best_ - options_.min_delta) {
      best_ = loss;
      without_improvement_ = 0;
      if (options_.restore_best_weights) remember(log.model);
      return;
    }
    if (++without_improvement_ < options_.patience) return;
    log.stop = true;
    restore(log.model);
  }

 private:
  void remember(const Module& model) {
    weights_.clear();
    for (const Variable& variable : model.variables()) weights_.push_back(variable.value());
  }
  void restore(const Module& model) {
    const Variables variables = model.variables();
    for (std::size_t i = 0; i < weights_.size() && i < variables.size(); ++i) variables[i].assign(weights_[i]);
    weights_.clear();
  }

  EarlyStoppingOptions options_;
  int last_epoch_ = -1, without_improvement_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
  Tensors weights_;
};

}  // namespace

Callback early_stopping(EarlyStoppingOptions options) {
  require(options.patience >= 0, "early_stopping: patience must not be negative, got ", options.patience);
  require(options.min_delta >= 0, "early_stopping: min_delta must not be negative, got ", options.min_delta);
  const auto state = std::make_shared<EarlyStopping>(options);
  return {.on_epoch_end = [state](const EpochLog& log) { state->on_epoch_end(log); }};
}

}  // namespace gradus
