/// Traced bodies of the steps.
#include "gradus/train/step.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/mode.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/train/batch_gradients.h"

namespace gradus {
namespace {

Variable flag(const char* name) { return Variable(zeros({}, boolean), name, {.trainable = false}); }

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

std::vector<Optimizer*> optimizers_of(Optimizer& optimizer, const Task& task) {
  std::vector<Optimizer*> all{&optimizer};
  for (Optimizer& each : task.optimizers) all.push_back(&each);
  return all;
}

/// Losses of outputs of another part of the batch.
void add_parts(std::vector<ExaminedOutput>& all, const std::vector<ExaminedOutput>& part) {
  if (all.empty()) {
    all = part;
    return;
  }
  for (std::size_t i = 0; i < part.size(); ++i) all[i].loss += part[i].loss;
}

Examined examined_for(const Logs::ForMetrics& given) {
  const Tensor weight = joint_weight(given.sample_weight, SequenceMask::of(given.prediction), given.prediction.dtype());
  return {.y = given.y, .prediction = given.prediction, .sample_weight = weight, .loss_weight = weight};
}

}  // namespace

FunctionOptions with_signature(FunctionOptions options, const std::vector<Spec>& specs) {
  if (options.input_signature.empty()) options.input_signature = specs, options.fixes_sizes = true;
  return options;
}

TrainStep::TrainStep(Module& model, Optimizer& optimizer, const Task& task, Options options)
    : model_(model),
      optimizer_(optimizer),
      task_(task),
      options_(std::move(options)),
      totals_({options_.metrics, options_.weighted_metrics, task.outputs, static_cast<bool>(task.train)}),
      diverged_(flag("diverged")),
      taken_(zeros({}, f64), "taken", {.trainable = false}),
      function_(options_.function, options_.strategy) {
  const bool is_of_all = !task.train || (task.optimizers.empty() && !optimizer_.is_built());
  if (is_of_all) optimizer_.prepare(model_.trainable_variables());
  for (const Optimizer* each : optimizers_of(optimizer_, task))
    require(each->is_built(), "fit: a step with several optimizers does not tell whose variables are whose; call ",
            "optimizer.build(variables) of each before");
}

Loss TrainStep::operator()(const Tensors& fields) {
  const HostFloats floats;
  const ModeScope mode(CallMode::training);
  totals_.read_names();
  const Called result = function_.call(fields, [this](In in) {
    Loss loss = run(in);
    return called(options_.gives_loss ? std::move(loss) : Loss());
  });
  totals_.keep_names();
  return loss_of(result);
}

std::int64_t TrainStep::taken() const { return static_cast<std::int64_t>(taken_.value().item()); }

Variables TrainStep::optimized() const {
  Variables all = model_.variables();
  for (const Optimizer* each : optimizers_of(optimizer_, task_)) all = all + each->variables();
  return all;
}

bool TrainStep::has_diverged() const { return diverged_.value().item() != 0; }

/// The weights are those before the step from the first loss on that is not finite: so the layer can be found where it
/// began, and the model is still of use. Under loss scaling such a step is an overflow, which the optimizer skips,
/// until there is no smaller scale left to try. Neither loss nor metrics of the epoch count such a step.
Loss TrainStep::run(In fields) {
  const Before before(optimized()), metrics_before(totals_.metric_variables());
  const Taken step = task_.train ? take_own(fields) : take(fields);
  const Tensor ok = logical_and(step.goes_on, logical_not(diverged_));
  before.keep_unless(ok);
  diverged_.assign(logical_not(ok));
  const Tensor counts = logical_and(ok, step.finite);
  (void)totals_.metric_variables();  // op by op what was gathered waits outside of them
  metrics_before.keep_unless(counts);
  if (!task_.train) {
    totals_.add(step.total, counts);
    totals_.add_outputs(step.outputs, counts);
  } else {
    totals_.add_logs(step.logs, counts);
    taken_.assign_add(cast(ok, f64));
  }
  return step.total;
}

TrainStep::Taken TrainStep::take(In fields) {
  std::vector<ExaminedOutput> outputs;
  const std::vector<Tensors> parts = parts_of_batch(fields, options_.micro_batch);
  // Shards of two lengths may have one part and several: they go the same way.
  const bool is_whole = parts.size() == 1 && !(options_.strategy && options_.micro_batch > 0);
  auto [loss, gradients] = batch_gradients(model_, task_, parts, is_whole, [&](const Examined& examined) {
    add_parts(outputs, examined.outputs);
    totals_.update_metrics(examined);
  });
  const Loss total = loss.over_shards();
  const Tensor finite = is_finite(total.value());
  Tensor goes_on = finite;
  if (const auto scale = loss_scale_of(gradients.variables()))
    goes_on = logical_or(gradients.finite_under_scaling(), scale->now() > fill({}, LossScale::least, f32));
  optimizer_.apply_gradients(gradients);
  return {.total = total, .finite = finite, .goes_on = goes_on, .outputs = std::move(outputs)};
}

/// The step applies its optimizers itself.
TrainStep::Taken TrainStep::take_own(In fields) {
  Taken step{.total = {}, .finite = fill({}, 1, boolean), .goes_on = {}, .logs = task_.train(fields)};
  const Loss* const loss = step.logs.find("loss");
  if (loss) step.total = loss->over_shards();
  for (const Logs::Entry& each : step.logs.entries())
    if (!loss || &each.value == loss) step.finite = logical_and(step.finite, is_finite(each.value.value()));
  step.goes_on = step.finite;
  if (const auto scale = loss_scale_of(model_.trainable_variables()))
    step.goes_on = logical_or(step.finite, scale->now() > fill({}, LossScale::least, f32));
  for (const Logs::ForMetrics& each : step.logs.for_metrics()) totals_.update_metrics(examined_for(each));
  return step;
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
    return found.tensors[0].per_replica->concat();
  }
  const Tensors found = function_->call(fields, {}, with_mask).tensors;
  if (found.size() > 1) SequenceMask::give(found[0], found[1]);
  return found[0];
}

Explanation StepFunction::explain() const {
  return strategy_ ? strategy_->explain_step(identity_) : function_->explain();
}

EvaluationStep::EvaluationStep(const Task& task, FitMetrics metrics, FitMetrics weighted_metrics,
                               FunctionOptions function, std::optional<Strategy> strategy)
    : task_(task),
      totals_({std::move(metrics), std::move(weighted_metrics), task.outputs, static_cast<bool>(task.test)}),
      function_(std::move(function), std::move(strategy)) {}

void EvaluationStep::examine(In fields) {
  const Tensor counts = fill({}, 1, boolean);
  if (task_.test) {
    const Logs logs = task_.test(fields);
    totals_.add_logs(logs, counts);
    for (const Logs::ForMetrics& each : logs.for_metrics()) totals_.update_metrics(examined_for(each));
    return;
  }
  const Examined examined = task_.examine(fields);
  totals_.add(examined.total().over_shards(), counts);
  totals_.add_outputs(examined.outputs, counts);
  totals_.update_metrics(examined);
}

void EvaluationStep::run(const Pipeline& dataset) {
  const HostFloats floats;
  const ModeScope mode(CallMode::inference);
  totals_.reset();
  std::int64_t steps = 0;
  for (const auto reading = dataset.epoch(0).begin(); !reading->at_end(); reading->advance(), ++steps)
    function_.call(reading->element(), [this](In in) {
      examine(in);
      return Called{};
    });
  require<DataError>(steps > 0, "evaluate: the data set is empty");
}

}  // namespace gradus
