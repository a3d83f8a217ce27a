/// The compiled steps of training and evaluation. Sums over a pass stay in Variables of the program: one dispatch per
/// step, and the host waits for nothing.
#pragma once
#include <vector>
#include "gradus/data/pipeline.h"
#include "gradus/distribute/strategy.h"
#include "gradus/function/traced_function.h"
#include "gradus/nn/metrics.h"
#include "gradus/optim/optimizer.h"
#include "gradus/train/task.h"

namespace gradus {

/// The sums of one pass over a data set.
class PassTotals {
 public:
  explicit PassTotals(std::vector<Metric> metrics);
  void reset();
  /// Within a traced step: adds if `counts`, a boolean scalar, holds.
  void add(const Loss& loss, const Tensor& counts);
  void update_metrics(const Examined& examined);
  /// The Variables of the metrics.
  Variables metric_variables() const;
  /// The mean over all that was added; 0 without any. Waits.
  double loss() const;
  /// True if nothing with a weight was added. Waits.
  bool are_empty() const;
  std::vector<std::pair<std::string, double>> metrics() const;
  /// The sums, for checkpoints within an epoch.
  Variables variables();

 private:
  Variable sum_, weight_;
  std::vector<Metric> metrics_;
};

/// A traced step: by itself, or on the shards of a strategy.
class StepFunction {
 public:
  StepFunction(FunctionOptions options, std::optional<Strategy> strategy);
  Called call(In fields, const Body& body);
  /// The result of a body that gives one tensor, with its mask: of the shards, in their order.
  Tensor result(In fields, const Body& body);
  Explanation explain() const;

 private:
  std::optional<Strategy> strategy_;
  std::shared_ptr<TracedFunction> function_;
  detail::StepIdentity identity_;
};

/// A training step: forward in training mode, backward, update.
class TrainStep {
 public:
  struct Options {
    std::vector<Metric> metrics;
    std::int64_t micro_batch = 0;
    bool gives_loss = false;
    FunctionOptions function;
    std::optional<Strategy> strategy = {};
  };
  /// All arguments must outlive the step. The model is built.
  TrainStep(Module& model, Optimizer& optimizer, const Task& task, Options options);

  /// Runs a step. The loss, if the options ask for it.
  Loss operator()(const Tensors& fields);
  PassTotals& totals() { return totals_; }
  /// True if a loss was not finite, under loss scaling with the smallest scale. Since then nothing was updated:
  /// iterations() counts the steps before. Waits.
  bool has_diverged() const;
  Explanation explain() const { return function_.explain(); }

 private:
  Loss run(In fields);
  std::vector<Tensors> parts_of(In fields) const;
  Module& model_;
  Optimizer& optimizer_;
  const Task& task_;
  Options options_;
  PassTotals totals_;
  Variable diverged_;
  StepFunction function_;
};

/// An evaluation step: forward in inference mode.
class EvaluationStep {
 public:
  EvaluationStep(const Task& task, std::vector<Metric> metrics, FunctionOptions function,
                 std::optional<Strategy> strategy = {});
  /// Reads all of epoch 0. DataError if it is empty.
  void run(const Pipeline& dataset);
  const PassTotals& totals() const { return totals_; }

 private:
  const Task& task_;
  PassTotals totals_;
  StepFunction function_;
};

/// `options` for elements of these specs: one variant serves every batch size.
FunctionOptions with_signature(FunctionOptions options, const std::vector<Spec>& specs);

}  // namespace gradus
