/// Errors about options.
#include "gradus/train/fit_checks.h"
#include <algorithm>
#include "gradus/base/nearest.h"
#include "gradus/base/rooms.h"
#include "gradus/train/shared_pass.h"

namespace gradus {
namespace {

/// More steps are not counted exactly in f64.
constexpr std::int64_t most_steps = std::int64_t{1} << 53;

void check_names(const FitMetrics& metrics) {
  const auto& all = metrics.entries();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      require(all[i].metric.name() != all[j].metric.name() || all[i].output != all[j].output,
              "fit: two metrics are called ", all[i].prefix(), all[i].metric.name(), "; give one of them another name");
}

void check_outputs(const FitMetrics& metrics, const Task& task) {
  for (const FitMetrics::Entry& each : metrics.entries()) {
    if (task.outputs.empty()) {
      require(each.output.empty(), "fit: metrics: outputs such as `", each.output,
              "` have names for a model with Losses alone");
    } else {
      require(!each.output.empty(), "fit: metrics: ", each.metric.name(),
              " does not tell of which output it is: .metrics = {{\"", task.outputs[0], "\", ", each.metric.name(),
              "}}", did_you_mean("", task.outputs));
      require(std::ranges::find(task.outputs, each.output) != task.outputs.end(), "fit: metrics: there is no output `",
              each.output, "` with a loss", did_you_mean(each.output, task.outputs));
    }
  }
}

void check_own_step(const FitOptions& options, const Task& task) {
  if (!task.train) return;
  constexpr std::string_view own = " is of the steps of fit; in a training step of one's own, ";
  require(options.micro_batch == 0, "fit: micro_batch", own, "divide the batch there: micro_batches(x, rows)");
  require(!options.sample_weight, "fit: sample_weight", own, "the weight is a field like others");
  require(options.class_weight.empty(), "fit: class_weight", own, "weigh the loss there");
  require(task.test || (!options.validation && options.validation_split == 0),
          "fit: a training step of one's own does not tell how to validate; give both: "
          "TrainingSteps{.train = train_step, .test = test_step}, of which the second gives Logs, too");
}

void check_validation(const FitOptions& options, const Task& task) {
  require(!options.validation || options.validation_split == 0,
          "fit: validation and validation_split are both given; leave out one of them");
  if (!options.validation) return;
  require(options.validation->fields() == task.fields, "fit: the validation set has ", options.validation->fields(),
          " fields, the training set ", task.fields);
  const Pipeline& validation = options.validation->pipeline();
  check_length(validation, "fit: the validation set", ".take(steps)");
  check_batched("fit: the validation set", validation.specs(), validation.batchings(), options.unbatched);
}

}  // namespace

ValidationFrequency::ValidationFrequency(int every) : every_(every) {
  require(every > 0, "validation_freq must be a positive number of epochs, got ", every);
}

ValidationFrequency::ValidationFrequency(std::vector<int> epochs) : epochs_(std::move(epochs)) {
  for (const int each : epochs_) require(each > 0, "validation_freq: epochs are numbered from 1, got ", each);
}

bool ValidationFrequency::includes(int epoch) const {
  return every_ > 0 ? (epoch + 1) % every_ == 0 : std::ranges::find(epochs_, epoch + 1) != epochs_.end();
}

void check_fit_options(const FitOptions& options, const Task& task, const Pipeline& dataset) {
  check_options("fit", options);
  require(options.initial_epoch <= options.epochs, "fit: initial_epoch must be within 0 and epochs, ", options.epochs,
          ", got ", options.initial_epoch);
  require(options.steps_per_epoch <= most_steps / options.epochs, "fit: ", options.epochs, " epochs of ",
          options.steps_per_epoch, " steps are more than 2^53");
  for (const FitMetrics* metrics : {&options.metrics, &options.weighted_metrics}) {
    check_names(*metrics);
    check_outputs(*metrics, task);
  }
  detail::check_class_weights(options.class_weight);
  require(options.class_weight.empty() || !options.sample_weight,
          "fit: class_weight and sample_weight cannot be given at the same time, as in Keras; multiply the sample "
          "weights by those of the classes");
  check_own_step(options, task);
  if (options.steps_per_epoch == 0) check_length(dataset, "fit: the data set", ".steps_per_epoch or .take(steps)");
  else require<DataError>(dataset.cardinality() != 0, "fit: the data set is empty");
  check_batched("fit: the data set", dataset.specs(), dataset.batchings(), options.unbatched);
  check_validation(options, task);
}

FitOptions for_trial(FitOptions options) {
  options.epochs = options.initial_epoch + 1;
  options.steps_per_epoch = 0;
  options.checkpoints = detail::not_given<CheckpointOptions>();
  return options;
}

void check_alike(const FitOptions& options) {
  if (!options.strategy) return;
  const bool hears =
      std::ranges::any_of(options.callbacks, [](const Callback& callback) { return bool(callback.on_step_end); });
  const std::vector<NamedNumber> numbers{
      {"epochs", options.epochs},
      {"initial_epoch", options.initial_epoch},
      {"steps_per_epoch", options.steps_per_epoch},
      {"micro_batch", options.micro_batch},
      {"fast_dev_run", options.fast_dev_run},
      {"the number of validation sets", options.validation.has_value()},
      {"the number of metrics", static_cast<std::int64_t>(options.metrics.size() + options.weighted_metrics.size())},
      {"whether a callback has on_step_end (1: one has)", hears},
  };
  options.strategy->check_same(numbers, "fit");
}

}  // namespace gradus
