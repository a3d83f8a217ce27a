/// Sums of losses, logs and metrics in Variables.
#include <algorithm>
#include <limits>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/nearest.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/train/step.h"

namespace gradus {
namespace {

Variable sum_variable(std::string name) { return Variable(zeros({}, f64), std::move(name), {.trainable = false}); }

void add_if(Variable& total, const Tensor& x, const Tensor& counts) {
  const Tensor before = total.value();
  total.assign(where(counts, before + cast(x, f64), before));
}

double mean_of(const Variable& sum, const Variable& weight, double of_none) {
  const double divisor = weight.value().item();
  return divisor == 0 ? of_none : sum.value().item() / divisor;
}

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

PassTotals::PassTotals(const PassOptions& options)
    : sum_(sum_variable("loss_sum")), weight_(sum_variable("loss_weight")) {
  for (const std::string& name : options.outputs)
    outputs_.push_back({name, sum_variable(name + "_loss_sum"), sum_variable(name + "_loss_weight")});
  const auto is_taken = [&](const FitMetrics::Entry& entry) {
    return std::ranges::any_of(metrics_, [&](const PassMetric& each) {
      return each.output == entry.output && each.metric.name() == entry.metric.name();
    });
  };
  for (const FitMetrics::Entry& each : options.metrics.entries())
    metrics_.push_back({each.metric, each.output, each.prefix(), false});
  for (const FitMetrics::Entry& each : options.weighted_metrics.entries())  // as Keras names them
    metrics_.push_back({each.metric, each.output, each.prefix() + (is_taken(each) ? "weighted_" : ""), true});
  if (options.has_logs) logs_.emplace();
}

void PassTotals::reset() {
  const HostFloats floats;
  sum_.assign(zeros({}, f64));
  weight_.assign(zeros({}, f64));
  for (OutputTotal& each : outputs_) {
    each.sum.assign(zeros({}, f64));
    each.weight.assign(zeros({}, f64));
  }
  for (PassMetric& each : metrics_) each.metric.reset();
  if (logs_) logs_->reset();
}

void PassTotals::add(const Loss& loss, const Tensor& counts) {
  add_if(sum_, loss.sum(), counts);
  add_if(weight_, loss.weight(), counts);
}

void PassTotals::add_outputs(const std::vector<ExaminedOutput>& outputs, const Tensor& counts) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Loss loss = outputs[i].loss.over_shards();
    add_if(outputs_[i].sum, loss.sum(), counts);
    add_if(outputs_[i].weight, loss.weight(), counts);
  }
}

void PassTotals::add_logs(const Logs& logs, const Tensor& counts) {
  if (const Loss* const loss = logs.find("loss")) add(loss->over_shards(), counts);
  logs_->add(logs, counts);
}

void PassTotals::read_names() {
  if (logs_) logs_->read_names();
}
void PassTotals::keep_names() {
  if (logs_) logs_->keep_names();
}

void PassTotals::update_metrics(const Examined& examined) {
  for (PassMetric& metric : metrics_) update(metric, examined);
}

void PassTotals::update(PassMetric& metric, const Examined& examined) {
  if (metric.output.empty()) {
    require(examined.prediction.defined(), "metrics: ", metric.metric.name(), ": this model has several outputs; ",
            "metrics are of one of them, by its name: .metrics = {{\"output\", ...}}, of a model with Losses");
    metric.metric.update_weighed(examined.y, examined.prediction,
                                 metric.is_weighted ? examined.loss_weight : examined.sample_weight);
    return;
  }
  std::vector<std::string> known;
  for (const ExaminedOutput& each : examined.outputs) {
    if (each.name == metric.output) return metric.metric.update_weighed(each.y, each.prediction, each.sample_weight);
    known.push_back(each.name);
  }
  throw InvalidArgument(
      text("metrics: there is no output `", metric.output, "` with a loss",
           known.empty() ? "; outputs have names for models with Losses alone" : did_you_mean(metric.output, known)));
}

Variables PassTotals::metric_variables() const {
  Variables all;
  for (const PassMetric& each : metrics_) all = all + each.metric.variables();
  return all;
}

bool PassTotals::are_empty() const { return weight_.value().item() == 0; }

double PassTotals::loss() const {
  const HostFloats floats;
  return mean_of(sum_, weight_, logs_ ? no_number : 0);
}

std::vector<std::pair<std::string, double>> PassTotals::metrics() const {
  const HostFloats floats;
  std::vector<std::pair<std::string, double>> results;
  for (const OutputTotal& each : outputs_) results.emplace_back(each.name + "_loss", mean_of(each.sum, each.weight, 0));
  if (logs_) results = logs_->numbers();
  for (const PassMetric& each : metrics_) {
    const std::vector<double> all = each.metric.results();
    const std::vector<std::string> names = each.metric.result_names();
    for (std::size_t i = 0; i < all.size(); ++i) results.emplace_back(each.prefix + names[i], all[i]);
  }
  return results;
}

std::vector<std::string> PassTotals::names() const {
  std::vector<std::string> all;
  for (const OutputTotal& each : outputs_) all.push_back(each.name + "_loss");
  if (logs_) all = logs_->names();
  for (const PassMetric& each : metrics_)
    for (const std::string& name : each.metric.result_names()) all.push_back(each.prefix + name);
  return all;
}

Variables PassTotals::variables() {
  Variables all{sum_, weight_};
  for (const OutputTotal& each : outputs_) all = all + Variables{each.sum, each.weight};
  if (logs_) all = all + logs_->variables();
  return all + metric_variables();
}

}  // namespace gradus
