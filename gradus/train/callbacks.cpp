/// The callbacks that change the training.
#include "gradus/train/callbacks.h"
#include <cmath>
#include <memory>
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/train/monitor.h"
#include "gradus/train/weights.h"

namespace gradus {
namespace {

class ReduceOnPlateau {
 public:
  explicit ReduceOnPlateau(ReduceLROnPlateauOptions options)
      : options_(std::move(options)),
        monitor_("reduce_lr_on_plateau", options_.monitor, options_.mode, options_.min_delta),
        best_("best"),
        waited_("waited"),
        cooling_("cooling") {}

  void on_train_begin() {
    best_ = monitor_.worst();
    waited_ = 0;
    cooling_ = 0;
  }

  void on_epoch_end(const EpochLog& log) {
    const std::optional<double> number = monitor_.value(log);
    if (!number) return;
    const double now = *number;
    if (cooling_ > 0) {
      cooling_ = cooling_ - 1;
      waited_ = 0;
    }
    if (monitor_.is_better(now, best_)) {
      best_ = now;
      waited_ = 0;
    } else if (cooling_ == 0) {
      waited_ = waited_ + 1;
      if (waited_ >= options_.patience) reduce(log.optimizer);
    }
  }

  std::string name() const { return monitor_.name(); }
  Variables variables() const {
    Variables all;
    for (const Remembered* number : {&best_, &waited_, &cooling_}) all.add(number->variable());
    return all;
  }

 private:
  void reduce(Optimizer& optimizer) {
    const double rate = optimizer.learning_rate();
    if (rate <= options_.min_lr) return;
    optimizer.set_learning_rate(std::max(rate * options_.factor, options_.min_lr));
    cooling_ = options_.cooldown;
    waited_ = 0;
  }

  ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  Remembered best_, waited_, cooling_;
};

class BestWeights {
 public:
  BestWeights(std::string file, ModelCheckpointOptions options)
      : file_(std::move(file)),
        options_(std::move(options)),
        monitor_("model_checkpoint", options_.monitor, options_.mode, 0),
        best_("best") {}

  void on_train_begin(const TrainBegin& log) {
    best_ = monitor_.worst();
    writes_ = !log.fast_dev_run;
  }

  void on_epoch_end(const EpochLog& log) {
    const std::optional<double> now = monitor_.value(log);
    const bool better = now && monitor_.is_better(*now, best_);
    if (better) best_ = *now;
    if (writes_ && (better || !options_.save_best_only)) save_safetensors(file_of(log.epoch), log.model);
  }

  std::string name() const { return monitor_.name(); }
  Variables variables() const {
    Variables all;
    all.add(best_.variable());
    return all;
  }

 private:
  std::filesystem::path file_of(int epoch) const {
    constexpr std::string_view mark = "{epoch}";
    std::string file = file_;
    for (std::size_t at = 0; (at = file.find(mark, at)) != std::string::npos;)
      file.replace(at, mark.size(), std::to_string(epoch));
    return file;
  }

  std::string file_;
  ModelCheckpointOptions options_;
  Monitor monitor_;
  Remembered best_;
  bool writes_ = true;
};

}  // namespace

Callback reduce_lr_on_plateau(ReduceLROnPlateauOptions options) {
  check_options("reduce_lr_on_plateau", options);
  const auto state = std::make_shared<ReduceOnPlateau>(std::move(options));
  return {.on_epoch_end = [state](const EpochLog& log) { state->on_epoch_end(log); },
          .on_train_begin = [state](const TrainBegin&) { state->on_train_begin(); },
          .variables = [state] { return state->variables(); },
          .name = state->name()};
}

Callback model_checkpoint(const std::filesystem::path& file, ModelCheckpointOptions options) {
  require(file.has_filename(), "model_checkpoint: `", file.string(), "` names no file");
  const auto state = std::make_shared<BestWeights>(file.string(), std::move(options));
  return {.on_epoch_end = [state](const EpochLog& log) { state->on_epoch_end(log); },
          .on_train_begin = [state](const TrainBegin& log) { state->on_train_begin(log); },
          .variables = [state] { return state->variables(); },
          .name = state->name()};
}

Callback swap_ema_weights() {
  const auto kept = std::make_shared<Tensors>();
  return {.on_test_begin =
              [kept](const TestLog& log) {
                require(log.optimizer.averages().size() > 0,
                        "swap_ema_weights: the optimizer keeps no averages; give it {.use_ema = true}");
                const Variables variables = log.model.trainable_variables();
                Tensors now;
                for (const Variable& each : variables) now.push_back(each.value());
                log.optimizer.finalize_variable_values(variables);
                *kept = std::move(now);
              },
          .on_test_end =
              [kept](const TestLog& log) {
                const Tensors before = std::exchange(*kept, {});
                const Variables variables = log.model.trainable_variables();
                for (std::size_t i = 0; i < before.size(); ++i) variables[i].assign(before[i]);
              },
          .name = "swap_ema_weights"};
}

Callback time_limit(std::chrono::duration<double> limit) {
  require(limit.count() >= 0, "time_limit: the limit must not be negative, got ", limit.count(), " s");
  using Clock = std::chrono::steady_clock;
  const auto begin = std::make_shared<Clock::time_point>(Clock::now());
  return {.on_step_end = [=](const StepLog& log) { log.stop = log.stop || Clock::now() - *begin >= limit; },
          .on_train_begin = [begin](const TrainBegin&) { *begin = Clock::now(); }};
}

Callback terminate_on_nan() {
  return {.on_diverged = [](const Diverged& error) { notice(text("gradus: ", error.what(), '\n')); }};
}

}  // namespace gradus
