/// The compiled steps of training and evaluation. Sums over a pass stay in Variables of the program: one dispatch per
/// step, and the host waits for nothing.
#pragma once
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/data/pipeline.h"
#include "gradus/distribute/strategy.h"
#include "gradus/function/traced_function.h"
#include "gradus/optim/optimizer.h"
#include "gradus/train/fit_metrics.h"
#include "gradus/train/log_totals.h"
#include "gradus/train/task.h"

namespace gradus {

using detail::Examined;
using detail::Task;

/// Figures that a pass over a data set gathers.
struct PassOptions {
  FitMetrics metrics = {};
  FitMetrics weighted_metrics = {};       // with the weights of classes, too
  std::vector<std::string> outputs = {};  // outputs that have a loss of their own
  bool has_logs = false;                  // of a step of the user's own
};

/// The sums of one pass over a data set.
class PassTotals {
 public:
  explicit PassTotals(const PassOptions& options);
  void reset();
  /// Within a traced step: adds if `counts`, a boolean scalar, holds.
  void add(const Loss& loss, const Tensor& counts);
  /// The losses of the outputs of a whole batch; those of parts add up.
  void add_outputs(const std::vector<ExaminedOutput>& outputs, const Tensor& counts);
  /// The logs of a step; that of name "loss" as the loss.
  void add_logs(const Logs& logs, const Tensor& counts);
  void update_metrics(const Examined& examined);
  /// The Variables of the metrics.
  Variables metric_variables() const;
  /// Around each step with logs, outside of it: their names go into Variables, for checkpoints.
  void read_names();
  void keep_names();
  /// The mean over all that was added; 0 without any, NaN without any log of this name. Waits.
  double loss() const;
  /// False for steps of the user's own whose logs have no "loss". Waits.
  bool has_loss() const { return !logs_ || !are_empty(); }
  /// True if nothing with a weight was added. Waits.
  bool are_empty() const;
  /// Losses of outputs, logs and metrics, by name. Waits.
  std::vector<std::pair<std::string, double>> metrics() const;
  /// The names of metrics(), as far as they are known before a step.
  std::vector<std::string> names() const;
  /// The sums, for checkpoints within an epoch.
  Variables variables();

 private:
  struct OutputTotal {
    std::string name;
    Variable sum, weight;
  };
  struct PassMetric {
    Metric metric;
    std::string output, prefix;
    bool is_weighted;
  };
  void update(PassMetric& metric, const Examined& examined);
  Variable sum_, weight_;
  std::vector<OutputTotal> outputs_;
  std::vector<PassMetric> metrics_;
  std::optional<LogTotals> logs_;
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
    FitMetrics metrics;
    FitMetrics weighted_metrics = {};
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
  /// Steps of this object so far that changed the model, or that loss scaling skipped: of a step of the user's own.
  /// Waits.
  std::int64_t taken() const;
  /// The variables that a step may change.
  Variables optimized() const;
  Explanation explain() const { return function_.explain(); }

 private:
  /// A step before it is decided whether it holds.
  struct Taken {
    Loss total;
    Tensor finite, goes_on;  // boolean scalars
    std::vector<ExaminedOutput> outputs = {};
    Logs logs = {};
  };
  Loss run(In fields);
  Taken take(In fields);
  Taken take_own(In fields);
  Module& model_;
  Optimizer& optimizer_;
  const Task& task_;
  Options options_;
  PassTotals totals_;
  Variable diverged_, taken_;
  StepFunction function_;
};

/// An evaluation step: forward in inference mode.
class EvaluationStep {
 public:
  EvaluationStep(const Task& task, FitMetrics metrics, FitMetrics weighted_metrics, FunctionOptions function,
                 std::optional<Strategy> strategy = {});
  /// Reads all of epoch 0. DataError if it is empty.
  void run(const Pipeline& dataset);
  const PassTotals& totals() const { return totals_; }

 private:
  void examine(In fields);
  const Task& task_;
  PassTotals totals_;
  StepFunction function_;
};

/// `options` for elements of these specs: one variant serves every batch size.
FunctionOptions with_signature(FunctionOptions options, const std::vector<Spec>& specs);

}  // namespace gradus
