/// Training steps that users write, as Keras's overridden train_step and test_step: a function of a batch that gives
/// its logs. fit compiles it, counts epochs, shows progress, calls callbacks, saves and resumes.
///
///   auto step = [&](Tensor x, Tensor y) {
///     GradientTape tape;
///     const Loss loss = loss_function(y, model(x)) + 0.1 * consistency(model, x);
///     optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
///     return Logs{{"loss", loss}};
///   };
///   fit(model, optimizer, step, dataset, {.epochs = 5});
#pragma once
#include <concepts>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>
#include "gradus/data/element.h"
#include "gradus/gradients/loss.h"
#include "gradus/optim/optimizer.h"

namespace gradus {

/// The largest number of names in the logs of a step.
inline constexpr std::size_t most_logs = 32;

/// The numbers of a batch by name. fit adds them up over the epoch: a Loss counts by its weight, so that the epoch's
/// number is the mean over examples, and a scalar counts as 1 for each step. In a step that a strategy runs a Loss adds
/// up over the shards, and a scalar has to be the same on all.
class Logs {
 public:
  /// One of the numbers.
  struct Entry {
    Entry(std::string name, Loss value) : name(std::move(name)), value(std::move(value)) {}
    /// InvalidArgument as for Loss::of.
    Entry(std::string name, const Tensor& scalar) : name(std::move(name)), value(Loss::of(scalar)) {}
    std::string name;  // in the history; "loss" is what fit watches and shows as the loss
    Loss value;        // a mean over examples, or a number
  };
  Logs() = default;
  /// InvalidArgument for a name that is given twice, or empty, and for more than `most_logs`.
  Logs(std::initializer_list<Entry> entries);
  /// Adds a number, as the constructor.
  void add(std::string name, Loss value) { add(Entry(std::move(name), std::move(value))); }
  /// Adds a number, as the constructor.
  void add(std::string name, const Tensor& scalar) { add(Entry(std::move(name), scalar)); }
  /// Gives these examples to the metrics of fit or evaluate; sample_weight may be left out.
  void compute_metrics(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight = {});

  // For the rooms of the library.
  struct ForMetrics {
    Tensor y, prediction, sample_weight;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<ForMetrics>& for_metrics() const { return for_metrics_; }
  /// Null if there is none of this name.
  const Loss* find(std::string_view name) const;

 private:
  void add(Entry entry);
  std::vector<Entry> entries_;
  std::vector<ForMetrics> for_metrics_;
};

namespace detail {

/// A function of the N fields of a batch that gives its logs.
template <class S, std::size_t N>
concept StepOn = requires { typename with_tensors_t<const S, N>; } && std::same_as<with_tensors_t<const S, N>, Logs>;

/// The largest number of fields of a batch that a step without its type takes.
inline constexpr std::size_t most_step_fields = 8;
/// The number of fields that a step takes; 0: it is none.
template <class S>
constexpr std::size_t fields_of_step = []<std::size_t... i>(std::index_sequence<i...>) {
  std::size_t fields = 0;
  ((fields = fields == 0 && StepOn<S, i + 1> ? i + 1 : fields), ...);
  return fields;
}(std::make_index_sequence<most_step_fields>());

/// A step without its type; it has to outlive the result.
template <std::size_t N, class S> std::function<Logs(In fields)> erased_step(const S& step) {
  return [&step](In fields) { return call_with<N>(step, fields); };
}

}  // namespace detail

/// A function of the fields of a batch, at most 8, that gives Logs.
class BatchStep {
 public:
  BatchStep() = default;  // none
  template <class S>
    requires(!std::same_as<S, BatchStep>)
  BatchStep(S step) : fields_(detail::fields_of_step<S>) {
    static_assert(detail::fields_of_step<S> > 0,
                  "a step takes one Tensor for each field of the data set and gives Logs: Logs{{\"loss\", loss}}");
    if constexpr (detail::fields_of_step<S> > 0)
      call_ = [step = std::move(step)](In fields) {
        return detail::call_with<detail::fields_of_step<S>>(step, fields);
      };
  }

  // For the rooms of the library.
  std::size_t fields() const { return fields_; }
  /// Empty for none. InvalidArgument, opened by `what`, if batches have another number of fields.
  const std::function<Logs(In fields)>& call(std::string_view what, std::size_t fields) const;

 private:
  std::size_t fields_ = 0;
  std::function<Logs(In fields)> call_;
};

/// A training step with further parts: a step for the validation set, and optimizers besides that of fit.
struct TrainingSteps {
  BatchStep train;      // in training mode; updates the model
  BatchStep test = {};  // in inference mode; needed for .validation
  /// Optimizers that the step applies besides fit's. Each has state for its variables (build), which is saved and
  /// restored with the training.
  std::vector<std::reference_wrapper<Optimizer>> optimizers = {};
};

}  // namespace gradus
