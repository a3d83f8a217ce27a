/// Early stopping.
#include "gradus/train/callback.h"
#include <memory>
#include "gradus/base/rooms.h"
#include "gradus/train/monitor.h"

namespace gradus {
namespace {

class EarlyStopping {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options)
      : options_(std::move(options)),
        monitor_("early_stopping", options_.monitor, options_.mode, options_.min_delta),
        best_("best"),
        waited_("waited"),
        stopped_("stopped"),
        has_weights_("has_weights") {}

  void on_train_begin(const TrainBegin& log) {
    best_ = monitor_.worst();
    waited_ = 0;
    stopped_ = 0;
    has_weights_ = 0;
    weights_.clear();
    if (options_.restore_best_weights)
      for (const Variable& variable : log.model.variables())  // without their masks, which may change
        weights_.emplace_back(variable.value(), variable.name());
  }

  /// A training that was stopped stays stopped when it is resumed, unless the program has more patience now.
  void on_epoch_begin(const EpochBegin& log) {
    if (waited_ < options_.patience) stopped_ = 0;
    log.stop = log.stop || stopped_ != 0;
  }

  void on_epoch_end(const EpochLog& log) {
    const std::optional<double> number = monitor_.value(log);
    if (!number || log.epoch < options_.start_from_epoch) return;
    const double now = *number;
    const bool better = monitor_.is_better(now, best_);
    if (better || has_weights_ == 0) remember(log.model);
    waited_ = waited_ + 1;
    if (better) {
      best_ = now;
      if (!options_.baseline || monitor_.is_better(now, *options_.baseline)) waited_ = 0;
      return;
    }
    if (waited_ < options_.patience) return;
    stopped_ = 1;
    log.stop = true;
  }

  void on_train_end(const TrainEnd& log) const {
    if (has_weights_ == 0) return;
    const Variables variables = log.model.variables();
    for (std::size_t i = 0; i < weights_.size() && i < variables.size(); ++i) variables[i].assign(weights_[i].value());
  }

  std::string name() const { return monitor_.name(); }
  Variables variables() const {
    Variables all;
    for (const Remembered* number : {&best_, &waited_, &stopped_, &has_weights_}) all.add(number->variable());
    for (const Variable& weight : weights_) all.add(weight);
    return all;
  }

 private:
  void remember(const Module& model) {
    if (weights_.empty()) return;
    const Variables variables = model.variables();
    for (std::size_t i = 0; i < weights_.size() && i < variables.size(); ++i) weights_[i].assign(variables[i].value());
    has_weights_ = 1;
  }

  EarlyStoppingOptions options_;
  Monitor monitor_;
  Remembered best_, waited_, stopped_, has_weights_;
  std::vector<Variable> weights_;
};

}  // namespace

Callback early_stopping(EarlyStoppingOptions options) {
  check_options("early_stopping", options);
  const auto state = std::make_shared<EarlyStopping>(std::move(options));
  return {.on_epoch_end = [state](const EpochLog& log) { state->on_epoch_end(log); },
          .on_train_begin = [state](const TrainBegin& log) { state->on_train_begin(log); },
          .on_epoch_begin = [state](const EpochBegin& log) { state->on_epoch_begin(log); },
          .on_train_end = [state](const TrainEnd& log) { state->on_train_end(log); },
          .variables = [state] { return state->variables(); },
          .name = state->name()};
}

}  // namespace gradus
