/// The steps at which masks change.
#include "gradus/train/pruning.h"
#include <algorithm>
#include <cmath>
#include <memory>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/train/monitor.h"

namespace gradus {
namespace {

void check(const PruningOptions& o) {
  const std::string_view name = "prune_low_magnitude";
  check_options(name, o);
  require(o.initial_sparsity <= o.final_sparsity, name, ": initial_sparsity must be between 0 and final_sparsity, ",
          o.final_sparsity, ", got ", o.initial_sparsity);
  require(o.end_step > o.begin_step || o.initial_sparsity == o.final_sparsity, name, ": end_step, ", o.end_step,
          ", must be after begin_step, ", o.begin_step);
}

class Pruning {
 public:
  Pruning(std::function<Variables()> variables, PruningOptions options)
      : variables_(std::move(variables)), options_(options), pruned_at_("pruned_at") {}

  void on_train_begin() {
    pruned_at_ = -1;
    add_masks();
  }

  /// After a checkpoint was restored, which may be one without masks. Masks are changed here once at most, at the begin
  /// of the training: a training that is resumed must do what the undisturbed one does.
  void on_epoch_begin(const EpochBegin& log) {
    add_masks();
    const std::int64_t step = log.optimizer.iterations();
    if (pruned_at_ < 0 && step >= options_.begin_step) prune(step);
  }

  void on_step_end(std::int64_t step) {
    const std::int64_t last = std::max(options_.begin_step, options_.end_step);
    if (step < options_.begin_step || step > last) return;
    if ((step - options_.begin_step) % options_.frequency == 0 || step == last) prune(step);
  }

  Variables variables() const {
    Variables all;
    all.add(pruned_at_.variable());
    return all;
  }

 private:
  /// So that a compiled step is traced with them, and only once.
  void add_masks() const {
    for (Variable& variable : variables_())
      if (!variable.mask().defined()) variable.set_mask(ones(variable.shape(), boolean));
  }
  void prune(std::int64_t step) {
    const double sparsity = sparsity_at(options_, step);
    for (Variable& variable : variables_()) prune_to(variable, sparsity, options_.block_size);
    pruned_at_ = static_cast<double>(step);
  }

  std::function<Variables()> variables_;
  PruningOptions options_;
  Remembered pruned_at_;
};

Callback pruning_of(std::function<Variables()> variables, const PruningOptions& options) {
  check(options);
  const auto state = std::make_shared<Pruning>(std::move(variables), options);
  return {.on_step_end = [state](const StepLog& log) { state->on_step_end(log.step); },
          .on_train_begin = [state](const TrainBegin&) { state->on_train_begin(); },
          .on_epoch_begin = [state](const EpochBegin& log) { state->on_epoch_begin(log); },
          .variables = [state] { return state->variables(); },
          .name = "pruning"};
}

}  // namespace

double sparsity_at(const PruningOptions& o, std::int64_t step) {
  const HostFloats floats;
  if (step < o.begin_step) return 0;
  if (o.initial_sparsity == o.final_sparsity || step >= o.end_step) return o.final_sparsity;
  const double over = static_cast<double>(step - o.begin_step) / static_cast<double>(o.end_step - o.begin_step);
  return o.final_sparsity + (o.initial_sparsity - o.final_sparsity) * std::pow(1 - over, o.power);
}

Callback prune_low_magnitude(Module& model, PruningOptions options) {
  return pruning_of([&model] { return prunable_variables(model); }, options);
}
Callback prune_low_magnitude(const Variables& variables, PruningOptions options) {
  return pruning_of([variables] { return variables; }, options);
}

}  // namespace gradus
