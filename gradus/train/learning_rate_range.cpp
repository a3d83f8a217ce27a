/// Steps at rising rates, and the rate at which the loss fell fastest.
#include "gradus/train/learning_rate_range.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include "gradus/base/floating_point_state.h"
#include "gradus/graph/context.h"
#include "gradus/ops/random_state.h"
#include "gradus/train/build.h"
#include "gradus/train/step.h"

namespace gradus {
namespace {

void check(const LearningRateRangeOptions& o) {
  constexpr std::string_view test = "learning_rate_range_test: ";
  check_options("learning_rate_range_test", o);
  require(o.min_learning_rate < o.max_learning_rate, test, "expected 0 < min_learning_rate < max_learning_rate, got ",
          o.min_learning_rate, " and ", o.max_learning_rate);
}

/// The elements of one epoch after the other, without end.
class Rounds {
 public:
  explicit Rounds(const Pipeline& dataset) : dataset_(dataset) {}
  const Tensors& next() {
    if (reading_) reading_->advance();
    if (!reading_ || reading_->at_end()) {
      reading_ = dataset_.epoch(epoch_++).begin();
      require<DataError>(!reading_->at_end(), "learning_rate_range_test: the data set is empty");
    }
    return reading_->element();
  }

 private:
  const Pipeline& dataset_;
  std::int64_t epoch_ = 0;
  std::unique_ptr<Reading> reading_;
};

/// The slope at element i by the index, as a central difference, at the ends one-sided.
double slope_at(std::span<const double> values, std::size_t i) {
  const std::size_t before = i == 0 ? 0 : i - 1, after = std::min(i + 1, values.size() - 1);
  return (values[after] - values[before]) / static_cast<double>(after - before);
}

}  // namespace

bool LearningRateRange::ends_not_finite() const { return !loss.empty() && !std::isfinite(loss.back()); }

double LearningRateRange::suggestion() const {
  const HostFloats floats;
  const auto first = static_cast<std::size_t>(steps / 10);
  std::size_t last = smoothed_loss.size();
  while (last > 0 && !std::isfinite(smoothed_loss[last - 1])) --last;
  require(last >= first + 4, "learning_rate_range_test: the loss exploded after ", loss.size(),
          " steps, which are too few to see where it falls; take a smaller min_learning_rate");
  const auto looked_at = std::span(smoothed_loss).subspan(first, last - 1 - first);
  std::size_t steepest = 0;
  for (std::size_t i = 1; i < looked_at.size(); ++i)
    if (slope_at(looked_at, i) < slope_at(looked_at, steepest)) steepest = i;
  require(slope_at(looked_at, steepest) < 0, "learning_rate_range_test: the loss fell nowhere between the rates ",
          learning_rate.front(), " and ", learning_rate.back(), "; take another range, and look at the picture");
  return learning_rate[first + steepest];
}

ResultTable LearningRateRange::table() const {
  const HostFloats floats;
  ResultTable table{{"step", "learning_rate", "loss", "smoothed_loss"}};
  for (std::size_t i = 0; i < loss.size(); ++i)
    table.rows.push_back({static_cast<std::int64_t>(i), learning_rate[i], loss[i], smoothed_loss[i]});
  return table;
}

std::vector<PlotPanel> LearningRateRange::picture() const {
  const HostFloats floats;
  PlotPanel panel{.title = "learning rate range test", .x_label = "learning rate", .y_label = "loss", .log_x = true};
  // Only the beginning of an exploded loss is of interest: the rest would flatten the plot.
  double least = std::numeric_limits<double>::infinity(), first = least;
  for (const double value : smoothed_loss) least = std::min(least, value);
  if (!smoothed_loss.empty()) first = smoothed_loss.front();
  const double highest = std::max(first, least) + 2 * std::abs(first - least);
  PlotSeries raw{"loss", learning_rate, loss}, smooth{"smoothed", learning_rate, smoothed_loss};
  for (double& value : raw.y)
    if (value > highest && highest > least) value = std::numeric_limits<double>::quiet_NaN();
  panel.series = {std::move(raw), std::move(smooth)};
  try {
    panel.mark = suggestion();
    panel.mark_label = text(*panel.mark);
  } catch (const InvalidArgument&) {}
  return {panel};
}

Optimizer detail::optimizer_of_copy(const Optimizer& optimizer, const Module& copy) {
  Optimizer of_copy = optimizer;
  if (of_copy.is_built()) of_copy.rebind(copy.trainable_variables());
  return of_copy;
}

void detail::check_is_copy(const Module& model, const Module& copy, std::string_view what) {
  require(&copy.layer_behind() != &model.layer_behind(), what,
          ": the model is a handle from shared(), whose copies are the same model; give a model that owns it, such as "
          "Sequential{model}");
}

LearningRateRange detail::learning_rate_range_test(Module& model, Optimizer& optimizer, const Task& task,
                                                   const Pipeline& dataset, const LearningRateRangeOptions& options) {
  check(options);
  check_batched("learning_rate_range_test: the data set", dataset.specs(), dataset.batchings(), options.unbatched);
  const Untraced outside;
  std::uint64_t state = random_state_of(options.seed);
  const SeedScope seeds(state);
  build_for_elements(dataset, CallMode::training, task.build);
  FunctionOptions function = with_signature(options.function, dataset.specs());
  if (function.name.empty()) function.name = "learning_rate_range_test";
  LearningRateRange range{.steps = options.steps};
  optimizer.with_steps_that_end([&] {
    TrainStep step(model, optimizer, task, {.gives_loss = true, .function = std::move(function)});
    Rounds batches(dataset);
    double average = 0, least = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < options.steps; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(options.steps - 1);
      const double rate =
          options.min_learning_rate * std::pow(options.max_learning_rate / options.min_learning_rate, share);
      optimizer.set_learning_rate(rate);
      const double loss = step(batches.next()).value().item();
      average = options.smoothing * average + (1 - options.smoothing) * loss;
      const double smoothed = average / (1 - std::pow(options.smoothing, static_cast<double>(i + 1)));
      range.learning_rate.push_back(rate);
      range.loss.push_back(loss);
      range.smoothed_loss.push_back(smoothed);
      if (!std::isfinite(loss) || (i > 0 && smoothed > options.stop_factor * least)) return;
      least = std::min(least, smoothed);
    }
  });
  return range;
}

}  // namespace gradus
