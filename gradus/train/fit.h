/// fit, evaluate and predict: training and using a model on data sets.
#pragma once
#include <optional>
#include "gradus/base/other_names.h"
#include "gradus/base/ranges.h"
#include "gradus/data/dataset.h"
#include "gradus/distribute/strategy.h"
#include "gradus/function/traced_function.h"
#include "gradus/nn/metrics.h"
#include "gradus/optim/optimizer.h"
#include "gradus/train/callback.h"
#include "gradus/train/checkpoints.h"
#include "gradus/train/fit_metrics.h"
#include "gradus/train/history.h"
#include "gradus/train/task.h"

namespace gradus {

/// The epochs with a validation: every n-th, or a list of epochs, counted from 1, as in Keras.
class ValidationFrequency {
 public:
  ValidationFrequency(int every = 1);                     // InvalidArgument unless it is positive
  ValidationFrequency(std::initializer_list<int> epochs)  // InvalidArgument unless all are positive
      : ValidationFrequency(std::vector<int>(epochs)) {}
  ValidationFrequency(std::vector<int> epochs);

  // For the rooms of the library.
  bool includes(int epoch) const;  // from 0
  bool is_every_epoch() const { return every_ == 1; }

 private:
  int every_ = 0;  // 0: the list
  std::vector<int> epochs_;
};

/// Options of fit.
struct FitOptions {
  int epochs = 1;                       // number of the last epoch, plus 1
  detail::NoBatchSize batch_size = {};  // never given: the data set has batches
  int initial_epoch = 0;                // number of the first epoch
  /// 0: an epoch is a pass over the data set. Else the number of steps of an epoch; the data set may be endless. Each
  /// epoch continues in the data where the previous one ended, and after the end of a pass with the next one, as with
  /// repeat(). (Keras ends the training at the end of the data.)
  std::int64_t steps_per_epoch = 0;
  /// A list, or lists by the names of outputs. They count sample weights, but no class weights.
  FitMetrics metrics = {};
  /// Metrics that count class weights, too. One whose name is also in `metrics` is called weighted_<name>.
  FitMetrics weighted_metrics = {};
  std::optional<AnyDataset> validation = {};      // has as many fields as the training set
  detail::NoValidationData validation_data = {};  // never given: the name is validation
  /// Share of the examples, the last ones, that are the validation set and are not trained on. They are split off where
  /// the data set gives examples by index and in one order, so before a shuffle and a batch. InvalidArgument for a data
  /// set that does not, as a generator or a filter. A cache in a file after the batch becomes one in memory.
  double validation_split = 0;
  ValidationFrequency validation_freq = {};  // 2: after every second epoch; {1, 2, 10}: after these, the first being 1
  bool sample_weight = false;                // the last field is the weight, the one before it y
  /// A weight for each class, {{0, 1}, {1, 8}}: in training the loss of an example is multiplied by that of its class.
  /// InvalidArgument with sample_weight, and for models with several outputs.
  ClassWeights class_weight = {};
  detail::NoShuffle shuffle = {};             // never given: shuffle the data set
  detail::NoInputShape input_shape = {};      // never given: the first batch determines it
  detail::NoLearningRate learning_rate = {};  // never given: it is the optimizer's
  std::vector<Callback> callbacks = {};       // called in this order
  /// 0: the whole batch at once. Else gradient accumulation over parts of this many rows, in the memory of one part.
  /// Losses and gradients add up to those of the batch, weights and a smaller last part included; clipping, decay and
  /// schedules act once, on the whole. Batch normalization differs from the whole batch: in training each part is
  /// normalized by its own mean and variance, and updates the moving statistics once, as in every library that
  /// accumulates. Layers of noise draw other numbers for each part.
  std::int64_t micro_batch = 0;
  /// Prefetching of batches, {.buffers = 2}, in place of the data set's own.
  PrefetchOptions prefetch = detail::not_given<PrefetchOptions>();
  /// {.directory = "run"}: resumes bit for bit from the newest checkpoint, whatever initial_epoch is, with a notice. If
  /// program and checkpoint differ, as in the learning rate or the batch size, the rule of docs/from-tensorflow.md
  /// decides: the program determines the continuation, the checkpoint gives the state, and a value that cannot change
  /// is an InvalidArgument before the first step. Saves in the background at the ends of epochs and when the training
  /// is stopped. The state of callbacks is part of it. Earlier epochs are neither repeated nor part of the history,
  /// except that the history is the recorded one if nothing is left to do. Losses within a resumed epoch are those of
  /// the whole epoch. Unavailable or ResourceExhausted before the first step if the directory cannot be made or
  /// written, or has no room.
  CheckpointOptions checkpoints = detail::not_given<CheckpointOptions>();
  FunctionOptions function = {};  // options of the compiled step
  /// The devices on which the step runs: each batch is divided into shards. Validation uses it, too. Each of several
  /// processes reads its rows of a batch, if the data set can be read by rows (Strategy::distribute). The first one
  /// shows progress and writes checkpoints, which all have to be able to read; callbacks run in each. An error in one
  /// process ends the training in all.
  std::optional<Strategy> strategy = {};
  bool verbose = true;            // on stderr: a progress line on a terminal, else one line per epoch
  bool unbatched = false;         // elements are used as they are, although no batch() made them: see fit
  std::int64_t fast_dev_run = 0;  // a trial of this many steps of one epoch, without checkpoints and files
  static constexpr auto ranges() {
    return std::array{Allowed::positive("epochs"),
                      Allowed::not_negative("initial_epoch steps_per_epoch micro_batch fast_dev_run"),
                      Allowed::share_below_one("validation_split")};
  }
};
/// Options of evaluate.
struct EvaluateOptions {
  FitMetrics metrics = {};                // as in fit
  FitMetrics weighted_metrics = {};       // as in fit
  detail::NoBatchSize batch_size = {};    // never given: the data set has batches
  bool sample_weight = false;             // the last field is the weight, the one before it y
  bool unbatched = false;                 // as in fit
  std::optional<Strategy> strategy = {};  // as in fit
};
/// Options of predict.
struct PredictOptions {
  std::int64_t batch_size = 256;          // for a tensor; a data set has batches of its own
  bool unbatched = false;                 // as in fit
  std::optional<Strategy> strategy = {};  // as in fit
  static constexpr auto ranges() { return std::array{Allowed::positive("batch_size")}; }
};

namespace detail {
History fit(Module& model, Optimizer& optimizer, const Task& task, const Pipeline& dataset, FitOptions options);
Evaluation evaluate(const Task& task, const Pipeline& dataset, EvaluateOptions options);
/// `inputs`: the number of the model's inputs, which are the first fields of an element.
Tensor predict(const Module& model, const ElementFunction& call, const Pipeline& dataset, PredictOptions options,
               std::size_t inputs);
}  // namespace detail

/// Trains a model. Each epoch reads the data set in its own order, that of dataset.epoch(e), to its end. The number of
/// elements need not be known (after filter, from generators, files of records or text). A step is one compiled
/// program. Its loss is read at the ends of epochs, and a few times a second for the progress line. From the first step
/// whose loss is not finite, nothing is updated any more. Diverged names that step, the layer where it began, and
/// remedies. DataError for an empty data set. InvalidArgument for an endless one without steps_per_epoch, and for
/// options that do not fit.
///
/// InvalidArgument also for a data set that was not batched: its elements have no axis of examples, so the rows of one
/// example would count as examples. {.unbatched = true} declares that elements are to be used as they are: batches that
/// were made by hand, or single examples, for which model and loss are written. The elements of a generator may be
/// either: a scalar field, or a last field with another number of rows than all others, shows that they are single
/// examples; otherwise a notice says that they count as batches, unless the number of rows is any_size.
///
/// In place of a loss there may be Losses, for a model with several outputs, or a user's training step: a function of
/// the fields of a batch that updates the model and gives Logs, or TrainingSteps (training_steps.h). Such a step is
/// compiled as that of fit, in training mode, and its logs are in the history. If the log "loss", or without it any
/// log, is not finite, the step's changes of the model and of the optimizers are discarded.
template <class M, class O, class L, class D>
History fit(M& model, O& optimizer, const L& loss, const D& dataset, FitOptions options = {}) {
  if constexpr (!std::derived_from<O, Optimizer>) {
    static_assert(std::is_void_v<O>, "the second argument is an optimizer: model, optimizer, loss, data");
  } else if constexpr (detail::fit_together<M, L, D>()) {
    const detail::Task task = task_of<detail::fields_of<D>>(model, loss, options.sample_weight, options.class_weight);
    return detail::fit(model, optimizer, task, dataset.pipeline(), std::move(options));
  }
  return {};
}

/// Loss and metrics in inference mode. Reads epoch 0 to its end. DataError if it is empty, InvalidArgument if it is
/// endless, and for options that do not fit. In place of the loss there may be Losses, a function of the fields of a
/// batch that gives Logs, or TrainingSteps with a test step.
template <class M, class L, class D>
Evaluation evaluate(const M& model, const L& loss, const D& dataset, EvaluateOptions options = {}) {
  if constexpr (detail::fit_together<M, L, D>()) {
    detail::Task task = task_of<detail::fields_of<D>>(model, loss, options.sample_weight);
    if constexpr (detail::StepOn<L, detail::fields_of<D>>) task.test = std::exchange(task.train, nullptr);
    return detail::evaluate(task, dataset.pipeline(), std::move(options));
  }
  return {};
}

/// model(x, inference), `batch_size` rows at a time. InvalidArgument unless `batch_size` is positive, and for a scalar.
Tensor predict(const Module& model, const Tensor& x, PredictOptions options = {});

/// model(x..., inference) of the batches (x...) of epoch 0, joined along axis 0. The data set has as many fields as the
/// model has inputs; remove y by a map. One compiled program serves every batch size. DataError for an empty data set.
/// InvalidArgument for an endless one, for one that was not batched, as in fit, and for fields that are scalars.
template <class M, std::size_t N>
  requires std::derived_from<M, Module> && std::same_as<detail::with_tensors_t<const M, N>, Tensor>
Tensor predict(const M& model, const Dataset<N>& dataset, PredictOptions options = {}) {
  return detail::predict(
      model, [&](In x) { return Tensors{detail::call_with<N>(model, x)}; }, dataset.pipeline(), options, N);
}

}  // namespace gradus
