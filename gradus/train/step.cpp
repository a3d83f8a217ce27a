/// Traced bodies of the steps.
#include "gradus/train/step.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/mode.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/train/part_penalties.h"

namespace gradus {
namespace {

Variable scalar_variable(DType dtype, const char* name) {
  return Variable(zeros({}, dtype), name, {.trainable = false});
}

Called called(Loss loss) {
  Called result;
  loss.for_each_tensor([&](Tensor& part) { result.tensors.push_back(std::exchange(part, {})); });
  result.structure = std::make_shared<const Loss>(std::move(loss));
  return result;
}

Loss loss_of(const Called& called) {
  Loss loss = *static_cast<const Loss*>(called.structure.get());
  std::size_t next = 0;
  loss.for_each_tensor([&](Tensor& part) { part = called.tensors[next++]; });
  return loss;
}

/// The values of variables before a step, and the way back to them.
class Before {
 public:
  explicit Before(const Variables& variables) : variables_(variables) {
    for (const Variable& variable : variables) values_.push_back(variable.value());
  }
  /// Later assignments hold only where `ok`, a boolean scalar, does.
  void keep_unless(const Tensor& ok) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Tensor now = variables_[i].value();
      if (now.node() != values_[i].node()) variables_[i].assign(where_changed(ok, now, values_[i]));
    }
  }

 private:
  Variables variables_;
  Tensors values_;
};

}  // namespace

PassTotals::PassTotals(std::vector<Metric> metrics)
    : sum_(scalar_variable(f64, "loss_sum")),
      weight_(scalar_variable(f64, "loss_weight")),
      metrics_(std::move(metrics)) {}

void PassTotals::reset() {
  const HostFloats floats;
  sum_.assign(zeros({}, f64));
  weight_.assign(zeros({}, f64));
  for (Metric& metric : metrics_) metric.reset();
}

void PassTotals::add(const Loss& loss, const Tensor& counts) {
  const Tensor sum = sum_.value(), weight = weight_.value();
  sum_.assign(where(counts, sum + cast(loss.sum(), f64), sum));
  weight_.assign(where(counts, weight + cast(loss.weight(), f64), weight));
}

void PassTotals::update_metrics(const Examined& examined) {
  if (metrics_.empty()) return;
  require(examined.prediction.defined(), "metrics: this model has several outputs; metrics are of models with one");
  for (Metric& metric : metrics_) metric.update_weighed(examined.y, examined.prediction, examined.sample_weight);
}

Variables PassTotals::metric_variables() const {
  Variables all;
  for (const Metric& metric : metrics_) all = all + metric.variables();
  return all;
}

bool PassTotals::are_empty() const { return weight_.value().item() == 0; }

double PassTotals::loss() const {
  const HostFloats floats;
  const double weight = weight_.value().item();
  return weight == 0 ? 0 : sum_.value().item() / weight;
}

std::vector<std::pair<std::string, double>> PassTotals::metrics() const {
  const HostFloats floats;
  std::vector<std::pair<std::string, double>> results;
  for (const Metric& metric : metrics_) {
    const std::vector<double> all = metric.results();
    const std::vector<std::string> names = metric.result_names();
    for (std::size_t i = 0; i < all.size(); ++i) results.emplace_back(names[i], all[i]);
  }
  return results;
}

Variables PassTotals::variables() { return Variables{sum_, weight_} + metric_variables(); }

FunctionOptions with_signature(FunctionOptions options, const std::vector<Spec>& specs) {
  if (options.input_signature.empty()) options.input_signature = specs, options.fixes_sizes = true;
  return options;
}

TrainStep::TrainStep(Module& model, Optimizer& optimizer, const Task& task, Options options)
    : model_(model),
      optimizer_(optimizer),
      task_(task),
      options_(std::move(options)),
      totals_(options_.metrics),
      diverged_(scalar_variable(boolean, "diverged")),
      function_(options_.function, options_.strategy) {
  optimizer_.prepare(model_.trainable_variables());
}

Loss TrainStep::operator()(const Tensors& fields) {
  const HostFloats floats;
  const ModeScope mode(CallMode::training);
  const Called result = function_.call(fields, [this](In in) {
    Loss loss = run(in);
    return called(options_.gives_loss ? std::move(loss) : Loss());
  });
  return loss_of(result);
}

bool TrainStep::has_diverged() const { return diverged_.value().item() != 0; }

std::vector<Tensors> TrainStep::parts_of(In fields) const {
  if (options_.micro_batch == 0) return {Tensors(fields.begin(), fields.end())};
  std::vector<Tensors> parts;
  const std::int64_t rows = detail::rows_to_divide(fields, options_.micro_batch);
  if (rows == 0) return {Tensors(fields.begin(), fields.end())};
  for (std::int64_t begin = 0; begin < rows; begin += options_.micro_batch) {
    parts.emplace_back();
    for (const Tensor& field : fields)
      parts.back().push_back(field.rows(begin, std::min(begin + options_.micro_batch, rows)));
  }
  return parts;
}

/// The weights are those before the step from the first loss on that is not finite: so the layer can be found where it
/// began, and the model is still of use. Under loss scaling such a step is an overflow, which the optimizer skips,
/// until there is no smaller scale left to try. Neither loss nor metrics of the epoch count such a step.
Loss TrainStep::run(In fields) {
  const Before before(model_.variables() + optimizer_.variables()), metrics_before(totals_.metric_variables());
  Loss total;
  Gradients gradients;
  const std::vector<Tensors> parts = parts_of(fields);
  // Shards of two lengths may have one part and several: they go the same way.
  const bool is_whole = parts.size() == 1 && !(options_.strategy && options_.micro_batch > 0);
  PartPenalties penalties(model_, is_whole ? 0 : fields[0].shape()[0]);
  for (const Tensors& part : parts) {
    GradientTape tape({.persistent = !is_whole});
    const Examined examined = task_.examine(part);
    require(parts.size() == 1 || !examined.loss.is_sum_with_penalty(), "fit: micro_batch: ", penalty_of_parts);
    const Loss loss = is_whole ? examined.total() : examined.loss;
    gradients += is_whole ? tape.gradient(loss, model_.trainable_variables())
                          : penalties.gradient(tape, examined, part[0].shape()[0]);
    total += loss;
    totals_.update_metrics(examined);
  }
  if (!is_whole) penalties.add_to(total, gradients);
  total = total.over_shards();
  const Tensor finite = is_finite(total.value());
  Tensor goes_on = finite;
  if (const auto scale = loss_scale_of(gradients.variables()))
    goes_on = logical_or(gradients.finite_under_scaling(), scale->now() > fill({}, LossScale::least, f32));
  optimizer_.apply_gradients(gradients);
  const Tensor ok = logical_and(goes_on, logical_not(diverged_));
  before.keep_unless(ok);
  diverged_.assign(logical_not(ok));
  const Tensor counts = logical_and(ok, finite);
  (void)totals_.metric_variables();  // op by op what was gathered waits outside of them
  metrics_before.keep_unless(counts);
  totals_.add(total, counts);
  return total;
}

StepFunction::StepFunction(FunctionOptions options, std::optional<Strategy> strategy) : strategy_(std::move(strategy)) {
  if (strategy_) options.input_signature.clear();  // shards have sizes of their own
  function_ = std::make_shared<TracedFunction>(options, nullptr, 0);
  identity_ = {.step = function_, .options = std::move(options)};
}

Called StepFunction::call(In fields, const Body& body) {
  if (!strategy_) return function_->call(fields, {}, body);
  const detail::StepResults found = strategy_->run_step(identity_, fields, {}, body);
  Called called{.structure = found.structure};
  for (const detail::StepResult& result : found.tensors) called.tensors.push_back(result.common);
  return called;
}

Tensor StepFunction::result(In fields, const Body& body) {
  const Body with_mask = [&](In in) {
    Called made = body(in);
    SequenceMask::append_all(made.tensors);
    return made;
  };
  if (strategy_) {
    const detail::StepResults found = strategy_->run_step(identity_, fields, {}, with_mask);
    found.give_masks(1);
    return found.tensors[0].of_all->concat();
  }
  const Tensors found = function_->call(fields, {}, with_mask).tensors;
  if (found.size() > 1) SequenceMask::give(found[0], found[1]);
  return found[0];
}

Explanation StepFunction::explain() const {
  return strategy_ ? strategy_->explain_step(identity_) : function_->explain();
}

EvaluationStep::EvaluationStep(const Task& task, std::vector<Metric> metrics, FunctionOptions function,
                               std::optional<Strategy> strategy)
    : task_(task), totals_(std::move(metrics)), function_(std::move(function), std::move(strategy)) {}

void EvaluationStep::run(const Pipeline& dataset) {
  const HostFloats floats;
  const ModeScope mode(CallMode::inference);
  totals_.reset();
  std::int64_t steps = 0;
  for (const auto reading = dataset.epoch(0).begin(); !reading->at_end(); reading->advance(), ++steps)
    function_.call(reading->element(), [this](In in) {
      const Examined examined = task_.examine(in);
      totals_.add(examined.total().over_shards(), fill({}, 1, boolean));
      totals_.update_metrics(examined);
      return Called{};
    });
  require<DataError>(steps > 0, "evaluate: the data set is empty");
}

}  // namespace gradus
