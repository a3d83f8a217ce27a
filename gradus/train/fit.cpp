/// The loop over epochs.
#include "gradus/train/fit.h"
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include "gradus/base/notice.h"
#include "gradus/data/batch_readers.h"
#include "gradus/function/mode.h"
#include "gradus/function/pending.h"
#include "gradus/ops/masked_rows.h"
#include "gradus/ops/random_state.h"
#include "gradus/train/build.h"
#include "gradus/train/checkpoint_writer.h"
#include "gradus/train/diagnosis.h"
#include "gradus/train/progress.h"
#include "gradus/train/step.h"
#include "gradus/train/training_place.h"

namespace gradus {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// More steps are not counted exactly in f64.
constexpr std::int64_t most_steps = std::int64_t{1} << 53;

/// How often the host looks whether the loss is still finite.
constexpr auto look_every = std::chrono::milliseconds(200);
constexpr std::int64_t look_every_steps = 64;  // of several processes, which look at the same steps

/// How many elements there are may be found out by reading them; that there is an end must be known.
void check_length(const Pipeline& dataset, std::string_view what, std::string_view remedy) {
  require(!dataset.is_endless(), what, " has no end; say how much is to be read, with ", remedy);
  require<DataError>(dataset.cardinality() != 0, what, " is empty");
}

void check(const FitOptions& options, const Task& task, const Pipeline& dataset) {
  check_options("fit", options);
  require(options.initial_epoch <= options.epochs, "fit: initial_epoch must be within 0 and epochs, ", options.epochs,
          ", got ", options.initial_epoch);
  require(options.steps_per_epoch <= most_steps / options.epochs, "fit: ", options.epochs, " epochs of ",
          options.steps_per_epoch, " steps are more than 2^53");
  for (std::size_t i = 0; i < options.metrics.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      require(options.metrics[i].name() != options.metrics[j].name(), "fit: two metrics are called ",
              options.metrics[i].name(), "; give one of them another name");
  if (options.steps_per_epoch == 0) check_length(dataset, "fit: the data set", ".steps_per_epoch or .take(steps)");
  else require<DataError>(dataset.cardinality() != 0, "fit: the data set is empty");
  check_batched("fit: the data set", dataset.specs(), dataset.batchings(), options.unbatched);
  if (!options.validation) return;
  require(options.validation->fields() == task.fields, "fit: the validation set has ", options.validation->fields(),
          " fields, the training set ", task.fields);
  const Pipeline& validation = options.validation->pipeline();
  check_length(validation, "fit: the validation set", ".take(steps)");
  check_batched("fit: the validation set", validation.specs(), validation.batchings(), options.unbatched);
}

/// The first steps of the first epoch, and none of what is on the disk.
FitOptions for_trial(FitOptions options) {
  options.epochs = options.initial_epoch + 1;
  options.steps_per_epoch = 0;
  options.checkpoints = detail::not_given<CheckpointOptions>();
  return options;
}

/// Checks that ranks have the same options; otherwise they would wait for each other in vain.
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
      {"the number of metrics", static_cast<std::int64_t>(options.metrics.size())},
      {"whether a callback has on_step_end (1: one has)", hears},
  };
  options.strategy->check_same(numbers, "fit");
}

/// The source of all epochs. Where steps are counted that is one stream of rounds.
Pipeline source_of(const Pipeline& given, const FitOptions& options) {
  if (options.strategy) options.strategy->check_data(given);  // a stream has no length to compare
  const Pipeline dataset = options.prefetch ? given.prefetch(options.prefetch) : given;
  if (options.fast_dev_run > 0) return dataset.take(options.fast_dev_run);
  return options.steps_per_epoch > 0 ? dataset.repeat(-1) : dataset;
}

/// The rows of this process.
Pipeline distributed(const Pipeline& dataset, const std::optional<Strategy>& strategy) {
  return strategy ? strategy->distributed(dataset) : dataset;
}

/// An error of one process of several ends the work of all, which learn the reason. A loss that is not finite all have.
template <class Work> auto told_to_all(const std::optional<Strategy>& strategy, Work work) {
  try {
    return work();
  } catch (const Diverged&) { throw; } catch (const std::exception& error) {
    if (strategy) strategy->give_up(error.what());
    throw;
  }
}

class Fitting {
 public:
  Fitting(Module& model, Optimizer& optimizer, const Task& task, const Pipeline& dataset, FitOptions options)
      : model_(model),
        optimizer_(optimizer),
        task_(task),
        given_(dataset),
        whole_dataset_(source_of(dataset, options)),
        dataset_(distributed(whole_dataset_, options.strategy)),
        options_(options.fast_dev_run > 0 ? for_trial(std::move(options)) : std::move(options)),
        step_(model, optimizer, task, step_options()),
        progress_(options_.verbose && writes(), options_.epochs, steps_if_known()) {
    if (!options_.validation) return;
    validation_set_ = options_.validation->pipeline();
    if (options_.fast_dev_run > 0) validation_set_ = validation_set_->take(options_.fast_dev_run);
    validation_set_ = distributed(*validation_set_, options_.strategy);
    validation_.emplace(task, options_.metrics, with_signature({.name = "validation"}, validation_set_->specs()),
                        options_.strategy);
  }

  History run() {
    begin();
    optimizer_.begin_training();
    for (int epoch = static_cast<int>(place_.next.epoch); epoch < options_.epochs && !stop_; ++epoch) run_epoch(epoch);
    if (checkpoints_) checkpoints_->wait();
    if (options_.strategy) options_.strategy->gather(optimizer_.averages());
    optimizer_.finalize_variable_values(model_.trainable_variables());
    tell(&Callback::on_train_end, TrainEnd{model_, optimizer_});
    return std::move(history_);
  }

 private:
  std::optional<std::int64_t> steps_if_known() const {
    return options_.steps_per_epoch > 0 ? options_.steps_per_epoch : dataset_.cardinality();
  }
  TrainStep::Options step_options() const {
    FunctionOptions function = options_.function;
    if (function.name.empty()) function.name = "fit";
    if (options_.micro_batch == 0) function = with_signature(std::move(function), dataset_.specs());
    else function.fixes_sizes = true;
    return {options_.metrics, options_.micro_batch, hears_of_steps_, std::move(function), options_.strategy};
  }

  template <class Log> void tell(std::function<void(Log)> Callback::* what, const Log& log) const {
    for (const Callback& callback : options_.callbacks)
      if (callback.*what) (callback.*what)(log);
  }

  /// Where the training starts, or goes on.
  void begin() {
    tell(&Callback::on_train_begin, TrainBegin{model_, optimizer_, options_.epochs, options_.fast_dev_run > 0});
    place_.next.epoch = options_.initial_epoch;
    place_.stream = options_.initial_epoch * options_.steps_per_epoch;
    if (options_.checkpoints && !(options_.checkpoints.directory.empty() && !writes())) {
      checkpoints_.emplace(options_.checkpoints, model_, optimizer_);
      if (writes()) right_to_write_ = hold_as_writer(options_.checkpoints.directory);
      if (options_.strategy)
        checkpoints_->read_by([&](const Variable& each) { return options_.strategy->value_on_first_rank(each); });
      checkpoints_->include("epoch", [this] { return step_.totals().variables(); });
      for (std::size_t i = 0; i < options_.callbacks.size(); ++i)
        if (const Callback& callback = options_.callbacks[i]; callback.variables)
          checkpoints_->include_callback(callback.name, callback.variables, text("callback_", i));
      checkpoints_->set_micro_shards(shards());
      resume();
      if (writes()) checkpoints_->require_writable();
    }
    begin_place_ = place_;
    steps_before_ = steps_so_far() - place_.next.index;
    if (!options_.strategy) return;
    const NamedNumber every_steps{"the every_steps of .checkpoints (-1: there are none)",
                                  saves() ? options_.checkpoints.every_steps : -1};
    if (options_.strategy->divides_state())
      options_.strategy->check_same(
          {&every_steps, 1}, "fit",
          "with .shard_optimizer all ranks give their parts to what is saved, so all need the same every_steps");
    const std::array<NamedNumber, 4> places{{{"the epoch that the training begins with", place_.next.epoch},
                                             {"the step that the training begins with", place_.next.index},
                                             {"the place in the data that the training begins with", place_.stream},
                                             {"the optimizer's number of steps so far", optimizer_.iterations()}}};
    options_.strategy->check_same(places, "fit", "all ranks have to read the same checkpoints");
  }

  std::int64_t shards() const { return options_.strategy ? options_.strategy->micro_shards() : 0; }

  /// The program's statement of this training, besides that of model and optimizer.
  TrainingFacts facts() const {
    TrainingFacts all{{"seed", std::to_string(last_seed())},
                      {"micro_batch", std::to_string(options_.micro_batch)},
                      {"steps_per_epoch", std::to_string(options_.steps_per_epoch)}};
    for (auto& fact : facts_of(given_)) all.push_back(std::move(fact));
    return all;
  }

  /// Continues from the newest checkpoint, if there is one.
  void resume() {
    const TrainingFacts now = facts();
    const std::string where = text("fit: ", options_.checkpoints.directory.string());
    const auto resumed = checkpoints_->resume(now, [&](const Checkpoints::Resumed& found) {
      const bool tells_of_data = !value_of(found.said, "element").empty();
      const TrainingFacts& before = tells_of_data ? found.said : now;
      TrainingPlace then{found.restored.position};
      then.stream = found.notes.stream.value_or(then.next.epoch * options_.steps_per_epoch + then.next.index);
      check_agreement(found.differences, where, within_pass(then, before));
      place_ = place_in(now, then, before, where);
      check_place(where);
      if (found.restored.micro_shards) check_division(*found.restored.micro_shards, shards());
    });
    if (!resumed) return;
    if (writes() && !resumed->contract.empty()) notice(resumed->contract);
    if (resumed->restored.micro_shards) tell_of_division(*resumed->restored.micro_shards, shards());
    recorded_ = completed(resumed->notes.history);
    const bool is_finished = place_.next.epoch >= options_.epochs;
    if (is_finished) history_ = recorded_;
    std::string line = is_finished ? "" : text_of(resumed->differences);
    if (const std::string callbacks = is_finished ? "" : text_of_callbacks(*resumed); !callbacks.empty())
      line += (line.empty() ? "" : "; ") + callbacks;
    if (writes() && (options_.verbose || !line.empty()))
      notice(text("gradus: ", resumed_line(resumed->restored.step, is_finished), line.empty() ? "" : "; ", line, '\n'));
  }

  /// "early_stopping begins anew: the checkpoint has no state of it"
  static std::string text_of_callbacks(const Checkpoints::Resumed& resumed) {
    const auto listed = [](const std::vector<std::string>& names) {
      std::string all;
      for (const std::string& name : names) all += (all.empty() ? "" : ", ") + printable(name, true);
      return all;
    };
    std::string line;
    if (!resumed.without_state.empty())
      line =
          text("callbacks that begin anew, since the checkpoint has no state of them: ", listed(resumed.without_state));
    if (!resumed.unused.empty())
      line += text(
          line.empty() ? "" : "; ",
          "state in the checkpoint that is not used, since the program has no such callback: ", listed(resumed.unused));
    return line;
  }

  /// Checks the place before anything is restored.
  void check_place(const std::string& where) const {
    const std::int64_t steps = options_.steps_per_epoch;
    require(steps == 0 || place_.next.index <= steps, "fit: the checkpoint was made after step ", place_.next.index,
            " of its epoch, but steps_per_epoch is ", steps, "; go on with the number that the training began with");
    if (place_.rows_done == 0) return;
    const auto fixed = [](const Spec& spec) { return spec.shape.rank() > 0 && spec.shape[0] != any_size; };
    require(is_alone() && std::ranges::none_of(given_.specs(), fixed), where, ": the checkpoint is ", place_.rows_done,
            " rows into a batch of the size that the program has now, and ",
            is_alone() ? "all of its batches are whole (drop_remainder)" : "several processes read whole batches alone",
            ": rows would be read twice or left out; go on with the size that the training began with, or one that "
            "divides the rows that are done");
  }

  std::string resumed_line(std::int64_t step, bool is_finished) const {
    const std::string from = text("the training of ", options_.checkpoints.directory.string());
    if (is_finished)
      return text(from, " is finished, after epoch ", place_.next.epoch, " and step ", step,
                  ": nothing is left to do (epochs is ", options_.epochs, ")");
    const std::string within = place_.next.index > 0 ? text(", after ", place_.next.index, " of its steps") : "";
    return text(from, " goes on after step ", step, " in epoch ", place_.next.epoch + 1, " of ", options_.epochs,
                within);
  }

  /// Reports that a callback ended the training before its first epoch, as an early_stopping that had already stopped
  /// it.
  void tell_of_no_step() {
    if (!history_.loss.empty() || recorded_.loss.empty()) return;
    history_ = recorded_;
    if (writes() && options_.verbose)
      notice(text("gradus: the training of ", options_.checkpoints.directory.string(),
                  " was ended by a callback: nothing is left to do\n"));
  }

  /// Fills in NaN for metrics that the recorded epochs do not have.
  History completed(History history) const {
    const std::size_t epochs = history.loss.size();
    const auto unknown = std::vector<double>(epochs, std::numeric_limits<double>::quiet_NaN());
    history.seconds.assign(epochs, 0);  // seconds belong to the current call only
    if (!options_.validation) history.validation_loss.clear();
    else if (history.validation_loss.size() != epochs) history.validation_loss = unknown;
    auto before = std::exchange(history.metrics, {});
    for (const std::string prefix : {"", "validation_"}) {
      if (!prefix.empty() && !options_.validation) continue;
      for (const Metric& metric : options_.metrics)
        for (const std::string& each : metric.result_names()) {
          const auto found = std::ranges::find(before, prefix + each, [](const auto& known) { return known.first; });
          const bool is_known = found != before.end() && found->second.size() == epochs;
          history.metrics.emplace_back(prefix + each, is_known ? found->second : unknown);
        }
    }
    return history;
  }

  /// The division of batches decides about bits. A program that states a number has to keep to it.
  void check_division(std::int64_t before, std::int64_t now) const {
    const bool is_kept_to = before > 0 && options_.strategy && options_.strategy->says_micro_shards();
    require(before == now || !is_kept_to, "fit: the checkpoint is of a training with ", division_text(before),
            ", and micro_shards is now ", now,
            ", which would change its bits in the midst: go on with micro_shards = ", before,
            ", on any number of replicas up to it, or begin a training of its own with the weights");
  }
  void tell_of_division(std::int64_t before, std::int64_t now) const {
    if (before != now && writes())
      notice(text("gradus: this training had ", division_text(before), ", and goes on with ", division_text(now),
                  ": from here on its bits are not those that it would have had\n"));
  }
  static std::string division_text(std::int64_t shards) {
    return shards == 0 ? "whole batches" : text("batches in ", shards, shards == 1 ? " shard" : " shards");
  }

  /// One of several processes writes.
  bool writes() const { return !options_.strategy || options_.strategy->own_rank() == 0; }
  bool is_alone() const { return !options_.strategy || options_.strategy->ranks() == 1; }
  /// Any process may ask all to stop.
  void agree_to_stop() {
    if (!is_alone()) stop_ = options_.strategy->any(stop_);
  }

  /// Those that loss scaling skipped included.
  std::int64_t steps_so_far() const { return optimizer_.iterations() + optimizer_.skipped_steps(); }

  /// `next` is the place of the element that comes next. Ranks that do not write give their parts of what is divided.
  void save(Position next) {
    if (writes()) {
      checkpoints_->note({options_.steps_per_epoch > 0 ? std::optional(stream_of(next)) : std::nullopt, recorded_});
      return checkpoints_->save_in_background(optimizer_.iterations(), next);
    }
    for (const Variable& each : optimizer_.variables()) options_.strategy->value_on_first_rank(each);
  }
  bool saves() const { return static_cast<bool>(options_.checkpoints); }

  void run_epoch(int epoch) {
    tell(&Callback::on_epoch_begin, EpochBegin{epoch, model_, optimizer_, stop_});
    agree_to_stop();
    if (stop_) return tell_of_no_step();
    progress_.begin_epoch(epoch);
    if (place_.next.index == 0) step_.totals().reset();
    const auto begin = Clock::now();
    const std::int64_t skipped = optimizer_.skipped_steps(), steps = train(epoch);
    if (step_.has_diverged()) return end_diverged(epoch);
    const Position next = place_.next;
    const bool whole = next == Position{epoch + 1, 0};
    if (saves() && !whole) save(next);  // as stopped, before callbacks count the partial epoch
    const double seconds = seconds_since(begin), loss = epoch_loss(optimizer_.skipped_steps() > skipped);
    NamedNumbers numbers = step_.totals().metrics();
    std::optional<double> validation_loss;
    if (validation_) {
      validation_->run(*validation_set_);
      validation_loss = validation_->totals().loss();
      for (const auto& [name, value] : validation_->totals().metrics())
        numbers.emplace_back("validation_" + name, value);
    }
    record(loss, validation_loss, seconds, numbers);
    show_epoch(steps, whole, seconds, loss, validation_loss, numbers);
    tell(&Callback::on_epoch_end, EpochLog{epoch, loss, validation_loss, numbers, seconds, model_, optimizer_, stop_});
    agree_to_stop();
    if (options_.strategy)
      options_.strategy->check_variables(model_.variables() + optimizer_.variables(),
                                         text("fit: at the end of epoch ", epoch + 1));
    if (saves() && whole) save(next);
    steps_before_ += steps;
  }

  /// Where loss scaling skipped every step there is none: 0 would be the best of all.
  double epoch_loss(bool skipped) {
    if (skipped && step_.totals().are_empty()) return std::numeric_limits<double>::quiet_NaN();
    return step_.totals().loss();
  }

  /// Trains from the place to the end of the epoch, or until it is stopped. Returns the number of steps of the epoch,
  /// earlier ones included.
  std::int64_t train(int epoch) {
    std::int64_t steps = place_.next.index;
    auto looked = Clock::now();
    Reading& reading = reading_at({epoch, steps});
    for (; !is_done(steps) && !reading.at_end() && !stop_; reading.advance()) {
      const Tensors left = rows_left(reading.element());
      if (place_.rows_done > 0 && left.empty()) continue;
      const Loss loss = step_(place_.rows_done > 0 ? left : reading.element());
      place_.rows_done = 0;
      ++steps;
      tell(&Callback::on_step_end, StepLog{steps_before_ + steps, loss, stop_});
      if (hears_of_steps_) agree_to_stop();
      const auto now = Clock::now();
      if (is_alone() ? now - looked >= look_every : steps % look_every_steps == 0) {
        looked = now;
        if (step_.has_diverged()) break;
        if (progress_.wants_line()) show_step(steps);
      }
      if (saves_after(steps)) {
        if (step_.has_diverged()) break;
        save({epoch, steps});
      }
    }
    require<DataError>(steps > 0, "fit: the training data set is empty in epoch ", epoch);
    const bool at_end = !is_done(steps) && reading.at_end();
    require<DataError>(options_.steps_per_epoch == 0 || !at_end,
                       "fit: a pass over the training data set gave nothing, ", steps, " steps into epoch ", epoch);
    if (options_.steps_per_epoch == 0) reading_.reset();
    place_.next = at_end || is_done(steps) ? Position{epoch + 1, 0} : Position{epoch, steps};
    return steps;
  }

  /// The untrained rows of the first batch after a change of the batch size; empty if there are none, and for all other
  /// batches.
  Tensors rows_left(const Tensors& batch) const {
    Tensors left;
    if (place_.rows_done == 0) return left;
    for (const Tensor& field : batch) {
      if (field.shape().rank() > 0 && field.shape()[0] <= place_.rows_done) return {};
      left.push_back(field.shape().rank() > 0 ? field.rows(place_.rows_done, field.shape()[0]) : field);
    }
    return left;
  }

  /// True at the end of an epoch; where steps are not counted, the end of the data tells.
  bool is_done(std::int64_t steps) const { return options_.steps_per_epoch > 0 && steps >= options_.steps_per_epoch; }

  /// The data of step number place.index of an epoch and those behind it.
  Pipeline data_from(const Pipeline& dataset, Position place) const {
    if (options_.steps_per_epoch > 0) return dataset.from({0, stream_of(place)});
    return place.index > 0 ? dataset.from(place) : dataset.epoch(place.epoch);
  }
  /// The element of the stream at a place, if steps are counted.
  std::int64_t stream_of(Position place) const {
    const std::int64_t steps = (place.epoch - begin_place_.next.epoch) * options_.steps_per_epoch + place.index;
    return begin_place_.stream + steps - begin_place_.next.index;
  }
  /// One stream has one reading for all epochs.
  Reading& reading_at(Position place) {
    if (options_.steps_per_epoch == 0 || !reading_) reading_ = data_from(dataset_, place).begin();
    return *reading_;
  }

  bool saves_after(std::int64_t steps) const {
    const std::int64_t every = saves() ? options_.checkpoints.every_steps : 0;
    return every > 0 && (steps_before_ + steps) % every == 0;
  }

  /// A loss was not finite: throws, or stops where a callback takes care of it.
  void end_diverged(int epoch) {
    progress_.abandon();
    const std::int64_t before = steps_so_far();
    const Tensors batch = data_from(whole_dataset_, {epoch, before - steps_before_}).first();
    const Diverged error(text("training diverged: the loss of step ", before + 1, " (epoch ", epoch + 1,
                              ") is not finite. It began with ", find_divergence(model_, task_, batch),
                              ". The model and the optimizer are as they were before that step. Try a smaller learning "
                              "rate (it was ",
                              optimizer_.learning_rate(),
                              "), {.global_clipnorm = 1} in the optimizer's options, inputs of about unit size, and "
                              "from_logits in place of a softmax"));
    stop_ = true;
    bool expected = false;
    for (const Callback& callback : options_.callbacks)
      if (callback.on_diverged) {
        expected = true;
        callback.on_diverged(error);
      }
    if (!expected) throw error;
  }

  void record(double loss, std::optional<double> validation_loss, double seconds, const NamedNumbers& numbers) {
    for (History* history : {&history_, &recorded_}) {
      history->loss.push_back(loss);
      history->seconds.push_back(seconds);
      if (validation_loss) history->validation_loss.push_back(*validation_loss);
      history->metrics.resize(numbers.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        history->metrics[i].first = numbers[i].first;
        history->metrics[i].second.push_back(numbers[i].second);
      }
    }
  }

  void show_step(std::int64_t steps) {
    NamedNumbers numbers{{"loss", step_.totals().loss()}};
    for (const auto& metric : step_.totals().metrics()) numbers.push_back(metric);
    progress_.show_step(steps, numbers);
  }
  void show_epoch(std::int64_t steps, bool whole, double seconds, double loss, std::optional<double> validation_loss,
                  const NamedNumbers& metrics) {
    NamedNumbers numbers{{"loss", loss}};
    if (validation_loss) numbers.emplace_back("validation_loss", *validation_loss);
    numbers.insert(numbers.end(), metrics.begin(), metrics.end());
    progress_.end_epoch(steps, whole, seconds, numbers);
  }

  Module& model_;
  Optimizer& optimizer_;
  const Task& task_;
  const Pipeline given_, whole_dataset_, dataset_;  // as given; all that is read; the part that this process reads
  const FitOptions options_;
  const bool hears_of_steps_ =
      std::ranges::any_of(options_.callbacks, [](const Callback& callback) { return bool(callback.on_step_end); });
  TrainStep step_;
  std::optional<Pipeline> validation_set_;
  std::optional<EvaluationStep> validation_;
  Progress progress_;
  History history_, recorded_;  // of this call; of all epochs, for checkpoints
  std::shared_ptr<const void> right_to_write_;
  std::optional<Checkpoints> checkpoints_;
  std::unique_ptr<Reading> reading_;
  TrainingPlace place_, begin_place_;  // the next place to train on, and the first one
  std::int64_t steps_before_ = 0;      // before this epoch
  bool stop_ = false;
};

/// A prediction is of all rows, so the data may not end in one process before they do in the others.
void require_all_rows(const Tensors& batch) {
  for (const Tensor& field : batch)
    if (const auto part = batch_of_part(field); part && !part->has_ended.empty()) {
      const auto rank = static_cast<int>(std::ranges::find(part->has_ended, true) - part->has_ended.begin());
      throw DataError(text("predict: the data set has fewer batches on ", part->readers->name_of(rank),
                           " than on others: all ranks read the same data"));
    }
}

}  // namespace

History detail::fit(Module& model, Optimizer& optimizer, const Task& task, const Pipeline& dataset,
                    FitOptions options) {
  check(options, task, dataset);
  build_for_elements(dataset, CallMode::training, task.build);
  History history;
  const std::optional<Strategy> strategy = options.strategy;
  optimizer.with_steps_that_end([&] {
    history = told_to_all(strategy, [&] {
      check_alike(options);
      return Fitting(model, optimizer, task, dataset, std::move(options)).run();
    });
  });
  return history;
}

Evaluation detail::evaluate(const Task& task, const Pipeline& dataset, EvaluateOptions options) {
  check_length(dataset, "evaluate: the data set", ".take(steps)");
  check_batched("evaluate: the data set", dataset.specs(), dataset.batchings(), options.unbatched);
  build_for_elements(dataset, CallMode::inference, task.build);
  EvaluationStep step(task, std::move(options.metrics), with_signature({.name = "evaluate"}, dataset.specs()),
                      options.strategy);
  told_to_all(options.strategy, [&] { step.run(distributed(dataset, options.strategy)); });
  return {step.totals().loss(), step.totals().metrics()};
}

Tensor detail::predict(const Module& model, const ElementFunction& call, const Pipeline& dataset,
                       PredictOptions options, std::size_t inputs) {
  check_options("predict", options);
  check_length(dataset, "predict: the data set", ".take(steps)");
  for (const Spec& spec : dataset.specs())
    require(spec.shape.rank() > 0, "predict: an element of the data set is a scalar ", spec, ", expected [rows, ...]");
  check_batched("predict: the data set", dataset.specs(), dataset.batchings(), options.unbatched);
  build_for_elements(dataset, CallMode::inference, [&](const std::vector<Spec>& specs, CallMode mode) {
    return build_all(model.layer_behind(), std::span(specs).first(inputs), mode);
  });
  StepFunction function(with_signature({.name = "predict"}, dataset.specs()), options.strategy);
  const ModeScope mode(CallMode::inference);
  Tensors parts;
  told_to_all(options.strategy, [&] {
    const auto reading = distributed(dataset, options.strategy).epoch(0).begin();
    for (; !reading->at_end(); reading->advance()) {
      const Tensors& batch = reading->element();
      require_all_rows(batch);
      parts.push_back(function.result(batch, [&](In x) { return Called{call(x), nullptr}; }));
    }
  });
  require<DataError>(!parts.empty(), "predict: the data set is empty");
  return joined_rows(parts);
}

Tensor predict(const Module& model, const Tensor& x, PredictOptions options) {
  check_options("predict", options);
  require(x.shape().rank() > 0, "predict: x is a scalar, expected [rows, ...]");
  const std::int64_t rows = x.shape()[0];
  if (options.strategy && rows > 0) {
    const MaskedRows masked({&x, 1});
    const auto call = [&](In in) { return Tensors{model(masked.take(in)[0])}; };
    const Pipeline batches = data::slices({masked.all().begin(), masked.all().end()}).batch(options.batch_size, {});
    return detail::predict(model, call, batches, options, 1);
  }
  if (rows <= options.batch_size) return model(x, inference);
  Tensors parts;
  for (std::int64_t begin = 0; begin < rows; begin += options.batch_size) {
    parts.push_back(model(masked_rows(x, begin, std::min(begin + options.batch_size, rows)), inference));
    parts.back().observed();  // of one batch no more than its result stays in memory
  }
  return joined_rows(parts);
}

}  // namespace gradus
