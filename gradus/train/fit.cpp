/// The loop over epochs.
#include "gradus/train/fit.h"
#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include "gradus/base/notice.h"
#include "gradus/data/split.h"
#include "gradus/function/mode.h"
#include "gradus/ops/random_state.h"
#include "gradus/train/build.h"
#include "gradus/train/checkpoint_writer.h"
#include "gradus/train/diagnosis.h"
#include "gradus/train/fit_checks.h"
#include "gradus/train/history_record.h"
#include "gradus/train/progress.h"
#include "gradus/train/shared_pass.h"
#include "gradus/train/step.h"
#include "gradus/train/training_place.h"

namespace gradus {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// How often the host looks whether the loss is still finite.
constexpr auto look_every = std::chrono::milliseconds(200);
constexpr std::int64_t look_every_steps = 64;  // of several processes, which look at the same steps

/// The data of all epochs. Where steps are counted that is one stream of rounds.
Pipeline source_of(const Pipeline& given, const FitOptions& options) {
  if (options.strategy) options.strategy->check_data(given);  // a stream has no length to compare
  const Pipeline dataset = options.prefetch ? given.prefetch(options.prefetch) : given;
  if (options.fast_dev_run > 0) return dataset.take(options.fast_dev_run);
  return options.steps_per_epoch > 0 ? dataset.repeat(-1) : dataset;
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
    validation_.emplace(task, options_.metrics, options_.weighted_metrics,
                        with_signature({.name = "validation"}, validation_set_->specs()), options_.strategy);
  }

  History run() {
    begin();
    optimizer_.begin_training();
    for (Optimizer& each : task_.optimizers) each.begin_training();
    for (int epoch = static_cast<int>(place_.next.epoch); epoch < options_.epochs && !stop_; ++epoch) run_epoch(epoch);
    if (checkpoints_) checkpoints_->wait();
    if (options_.strategy) options_.strategy->gather(optimizer_.averages());
    write_averages();
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
    return {options_.metrics, options_.weighted_metrics, options_.micro_batch,
            hears_of_steps_,  std::move(function),       options_.strategy};
  }

  /// A step of the user's own may train a part of the model.
  void write_averages() {
    const Variables all = model_.trainable_variables();
    if (!task_.train || (task_.optimizers.empty() && optimizer_.averages().size() == all.size()))
      optimizer_.finalize_variable_values(all);
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
      for (std::size_t i = 0; i < task_.optimizers.size(); ++i)
        checkpoints_->include(text("optimizer_", i + 1), [this, i] { return task_.optimizers[i].get().variables(); });
      for (std::size_t i = 0; i < options_.callbacks.size(); ++i)
        if (const Callback& callback = options_.callbacks[i]; callback.variables)
          checkpoints_->include_callback(callback.name, callback.variables, text("callback_", i));
      checkpoints_->set_micro_shards(shards());
      resume();
      if (writes()) checkpoints_->require_writable();
    }
    begin_place_ = place_;
    begun_with_ = steps_so_far();
    steps_before_ = begun_with_ - place_.next.index;
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

  /// "early_stopping starts from the beginning: the checkpoint has no state of it"
  static std::string text_of_callbacks(const Checkpoints::Resumed& resumed) {
    const auto listed = [](const std::vector<std::string>& names) {
      std::string all;
      for (const std::string& name : names) all += (all.empty() ? "" : ", ") + printable(name, true);
      return all;
    };
    std::string line;
    if (!resumed.without_state.empty())
      line = text("callbacks that start from the beginning, since the checkpoint has no state of them: ",
                  listed(resumed.without_state));
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
  History completed(History history) {
    RecordedNames names{.training = step_.totals().names(), .keeps_others = static_cast<bool>(task_.train)};
    if (validation_) names.validation = validation_names();
    names.validates_every_epoch = options_.validation_freq.is_every_epoch();
    return completed_history(std::move(history), names);
  }
  /// "validation_loss", "validation_mean_absolute_error"
  std::vector<std::string> validation_names() const {
    std::vector<std::string> names{"validation_loss"};
    for (const std::string& each : validation_->totals().names()) names.push_back("validation_" + each);
    return names;
  }

  /// The division of batches decides about bits. A program that states a number has to keep to it.
  void check_division(std::int64_t before, std::int64_t now) const {
    const bool is_kept_to = before > 0 && options_.strategy && options_.strategy->has_micro_shards();
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
    const std::optional<double> validation_loss = validate(epoch, numbers);
    for (History* history : {&history_, &recorded_}) add_epoch(*history, {loss, validation_loss, seconds, numbers});
    show_epoch(steps, whole, seconds, loss, validation_loss, numbers);
    EpochLog log{epoch, loss, validation_loss, numbers, seconds, model_, optimizer_, stop_};
    if (validation_ && !options_.validation_freq.includes(epoch)) log.absent = validation_names();
    log.has_loss = step_.totals().has_loss();
    tell(&Callback::on_epoch_end, log);
    agree_to_stop();
    if (options_.strategy)
      options_.strategy->check_variables(step_.optimized(), text("fit: at the end of epoch ", epoch + 1));
    if (saves() && whole) save(next);
    steps_before_ += steps;
  }

  /// The loss of the validation set, whose other numbers are added; empty where this epoch has none.
  std::optional<double> validate(int epoch, NamedNumbers& numbers) {
    if (!validation_ || !options_.validation_freq.includes(epoch)) return {};
    const auto hears = [](const Callback& callback) { return bool(callback.on_test_begin); };
    if (options_.strategy && std::ranges::any_of(options_.callbacks, hears))
      options_.strategy->gather(optimizer_.averages());
    const TestLog log{model_, optimizer_};
    try {
      tell(&Callback::on_test_begin, log);
      validation_->run(*validation_set_);
    } catch (...) {
      tell(&Callback::on_test_end, log);
      throw;
    }
    tell(&Callback::on_test_end, log);
    for (const auto& [name, value] : validation_->totals().metrics()) numbers.emplace_back("validation_" + name, value);
    if (!validation_->totals().has_loss()) return {};
    return validation_->totals().loss();
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
    const std::int64_t before = task_.train ? begun_with_ + step_.taken() : steps_so_far();
    const Tensors batch = data_from(whole_dataset_, {epoch, before - steps_before_}).first();
    const Diverged error(text("training diverged: the loss of step ", before + 1, " (epoch ", epoch + 1,
                              ") is not finite. It began with ", find_divergence(model_, task_, optimizer_, batch),
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

  void show_step(std::int64_t steps) {
    NamedNumbers numbers;
    if (step_.totals().has_loss()) numbers.emplace_back("loss", step_.totals().loss());
    for (const auto& metric : step_.totals().metrics()) numbers.push_back(metric);
    progress_.show_step(steps, numbers);
  }
  void show_epoch(std::int64_t steps, bool whole, double seconds, double loss, std::optional<double> validation_loss,
                  const NamedNumbers& metrics) {
    NamedNumbers numbers;
    if (step_.totals().has_loss()) numbers.emplace_back("loss", loss);
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
  std::int64_t begun_with_ = 0;        // steps of the optimizer before this training
  std::int64_t steps_before_ = 0;      // before this epoch
  bool stop_ = false;
};

}  // namespace

namespace {

/// Runs `work` such that the steps of all optimizers end with it.
void with_steps_that_end(std::span<const std::reference_wrapper<Optimizer>> optimizers,
                         const std::function<void()>& work) {
  if (optimizers.empty()) return work();
  optimizers[0].get().with_steps_that_end([&] { with_steps_that_end(optimizers.subspan(1), work); });
}

}  // namespace

History detail::fit(Module& model, Optimizer& optimizer, const Task& task, const Pipeline& dataset,
                    FitOptions options) {
  check_fit_options(options, task, dataset);
  if (options.validation_split > 0) {
    const SplitPipeline parts = split_examples("fit: validation_split", dataset, options.validation_split);
    options.validation = AnyDataset(parts.last);
    options.validation_split = 0;
    return detail::fit(model, optimizer, task, parts.first, std::move(options));
  }
  build_for_elements(dataset, CallMode::training, task.build);
  History history;
  const std::optional<Strategy> strategy = options.strategy;
  std::vector<std::reference_wrapper<Optimizer>> optimizers{optimizer};
  optimizers.insert(optimizers.end(), task.optimizers.begin(), task.optimizers.end());
  with_steps_that_end(optimizers, [&] {
    history = told_to_all(strategy, [&] {
      check_alike(options);
      return Fitting(model, optimizer, task, dataset, std::move(options)).run();
    });
  });
  return history;
}

}  // namespace gradus
