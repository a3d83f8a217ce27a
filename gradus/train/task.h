/// Task: everything that fit, evaluate and their compiled steps need of a model, a loss and a data set, without their
/// types.
///
/// An element of Dataset<N> is (x..., y), or (x..., y, sample_weight).
#pragma once
#include <concepts>
#include <functional>
#include <string_view>
#include "gradus/data/dataset.h"
#include "gradus/data/element.h"
#include "gradus/function/mode.h"
#include "gradus/gradients/loss.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/module.h"
#include "gradus/train/class_weights.h"
#include "gradus/train/outputs.h"
#include "gradus/train/training_steps.h"

namespace gradus {

namespace detail {
template <class M, std::size_t inputs>
concept Accepts = requires { typename with_tensors_t<const M, inputs>; };
}  // namespace detail

/// The type of a model's prediction for an element of N fields.
template <class M, std::size_t N> struct prediction {};
template <class M, std::size_t N>
  requires(N >= 2) && detail::Accepts<M, N - 1>
struct prediction<M, N> {
  using type = detail::with_tensors_t<const M, N - 1>;  // the prediction
};
template <class M, std::size_t N>
  requires(N >= 3) && (!detail::Accepts<M, N - 1>) && detail::Accepts<M, N - 2>
struct prediction<M, N> {
  using type = detail::with_tensors_t<const M, N - 2>;  // the prediction
};
/// The prediction of M for an element of N fields.
template <class M, std::size_t N> using prediction_t = typename prediction<M, N>::type;

/// A callable that gives a Loss from (y, prediction) and, if there are weights or the prediction has a mask, from (y,
/// prediction, sample_weight). Or Losses by the names of outputs.
template <class L, class M, std::size_t N>
concept LossFor = std::derived_from<M, Module> &&
                  (std::same_as<L, Losses> || std::is_invocable_r_v<Loss, const L&, Tensor, prediction_t<M, N>>);

namespace detail {

template <class D> constexpr std::size_t fields_of = 0;
template <std::size_t N> constexpr std::size_t fields_of<Dataset<N>> = N;

/// True if M takes at least one number of inputs below `fields`, and gives outputs with names for it.
template <class M, std::size_t fields>
constexpr bool has_named_outputs = []<std::size_t... i>(std::index_sequence<i...>) {
  const auto fits = []<std::size_t inputs>(std::integral_constant<std::size_t, inputs>) {
    if constexpr (Accepts<M, inputs>) return NamedOutputs<std::remove_cvref_t<with_tensors_t<const M, inputs>>>;
    else return false;
  };
  return (fits(std::integral_constant<std::size_t, i + 1>()) || ...);
}(std::make_index_sequence<fields - 1>());

/// True if these can be trained or evaluated together. If not, it does not compile, and the message tells why.
template <class M, class L, class D> constexpr bool fit_together() {
  constexpr std::size_t n = fields_of<D>;
  if constexpr (!std::derived_from<M, Module>) {
    static_assert(std::is_void_v<M>, "the first argument is a model: a Sequential, or Model<Net>");
  } else if constexpr (n == 0) {
    static_assert(
        std::is_void_v<D>,
        "data is a data set: data::from_tensor_slices(x, y).batch(32); one of strings is mapped to numbers before");
  } else if constexpr (StepOn<L, n>) {
    return true;
  } else if constexpr (std::same_as<L, TrainingSteps>) {
    return true;
  } else if constexpr (std::same_as<L, Losses>) {
    static_assert(
        has_named_outputs<M, n>,
        "Losses are of a model that takes the first fields and gives a struct, map, tuple or array of tensors");
    return has_named_outputs<M, n>;
  } else if constexpr (std::convertible_to<const L&, std::string_view>) {
    static_assert(std::is_void_v<L>, "a loss is an object or a function, such as MeanSquaredError(); no text");
  } else if constexpr (!requires { typename prediction_t<M, n>; }) {
    static_assert(std::is_void_v<M>, "the model does not take the fields before y (its operator() is to be const)");
  } else if constexpr (!std::invocable<const L&, Tensor, prediction_t<M, n>>) {
    static_assert(std::is_void_v<L>,
                  "the loss does not take (y, prediction); the order is model, optimizer, loss, data");
  } else if constexpr (!std::is_invocable_r_v<Loss, const L&, Tensor, prediction_t<M, n>>) {
    static_assert(std::is_void_v<L>, "a loss gives a Loss, which knows its weight: Loss::mean(square(y - prediction))");
  } else {
    return true;
  }
  return false;
}

/// The result of one batch through model and loss.
struct Examined {
  Loss loss = {};                  // without the penalties
  Tensor y = {}, prediction = {};  // the prediction is empty for a model with several outputs
  Tensor sample_weight = {};       // empty: none; includes the mask of the prediction
  Tensor loss_weight = {};         // that of the loss: with the weights of classes
  Tensor penalty = {};             // on the model's variables: a scalar; empty: none
  Tensor activity_penalty = {};    // on the results of its layers, the mean over the rows of this batch; empty: none
  std::vector<ExaminedOutput> outputs = {};  // of a model whose outputs have losses by name
  bool parts_differ = false;                 // losses of parts of a batch would not add up to this one
  Loss total() const;                        // the loss that is minimised, with penalties
};

/// Model, loss and fields of a training.
struct Task {
  std::size_t fields = 0;  // number of fields of an element
  /// Calls the model and the loss, in the mode of the caller.
  std::function<Examined(In fields)> examine = {};
  std::vector<std::string> outputs = {};  // those with a loss by name
  /// Makes the variables for elements of these specs, as build_all.
  std::function<bool(const std::vector<Spec>&, CallMode mode)> build = {};
  /// Steps of the user's own, in place of `examine`; empty: none.
  std::function<Logs(In fields)> train = {}, test = {};
  std::vector<std::reference_wrapper<Optimizer>> optimizers = {};  // that `train` applies besides fit's
};

}  // namespace detail

/// Builds a model for these inputs. In a built model it builds the layers that calls in this mode run besides, if their
/// sizes are known. True if all of it is built now.
bool build_all(detail::Layer& model, std::span<const Spec> inputs, CallMode mode);

namespace detail {

/// Throws: elements of `fields` fields do not fit, with or without a weight.
[[noreturn]] void fail_fields(std::size_t fields, std::size_t inputs, bool sample_weight);
[[noreturn]] void fail_class_weights();
[[noreturn]] void fail_unbuilt();
/// x with 0 for values that are not finite in examples of weight 0, so that they reach no gradient of the model.
Tensor without_left_out(const Tensor& x, const Tensor& weight);
/// Adds the penalties that the model's layers ask for, and clears them.
void add_penalties(Examined& examined, const Layer& model);

/// A model with one output and its loss, as a batch goes through them.
struct OneOutput {
  std::size_t inputs = 1;                      // the first fields of an element, the model's; y follows
  bool is_weighted = false;                    // the field behind y is the weight of an example
  ClassWeights class_weights = {};             // for training
  std::function<Tensor(In inputs)> call = {};  // the model
  std::function<Loss(const Tensor& y, const Tensor& prediction, const ExampleWeights& weights)> loss = {};
};
/// A batch through model and loss.
Examined examine(const Layer& model, const OneOutput& parts, In fields);
/// The model's fields of an element; values of examples of weight 0 that are not finite are 0.
Tensors inputs_of(In fields, std::size_t inputs, bool is_weighted);

/// As above, of a model of C++, whose prediction may be a struct of tensors that its loss takes.
template <std::size_t inputs, std::size_t N, class M, class L>
Examined examine(const M& model, const L& loss, const ClassWeights& class_weights, In fields) {
  constexpr bool is_weighted = inputs + 2 == N;
  const auto loss_of = [&](const Tensor& y, const auto& prediction, const ExampleWeights& weights) {
    return weighed_loss(loss, y, prediction, weights);
  };
  if constexpr (std::same_as<decltype(call_with<inputs>(model, fields)), Tensor>) {
    const auto call = [&](In in) { return call_with<inputs>(model, in); };
    return examine(model.layer_behind(), {inputs, is_weighted, class_weights, call, loss_of}, fields);
  } else {
    if (!class_weights.empty()) fail_class_weights();
    const StepScope step(model.layer_behind());
    const auto prediction = call_with<inputs>(model, inputs_of(fields, inputs, is_weighted));
    Examined result{.y = fields[inputs]};
    ExampleWeights weights;
    if constexpr (is_weighted) weights.own = weights.joint = result.loss_weight = fields[inputs + 1];
    result.loss = loss_of(result.y, prediction, weights);
    add_penalties(result, model.layer_behind());
    return result;
  }
}

/// The outputs of a model for its inputs.
using OutputsOf = std::function<NamedTensors(In inputs)>;
/// The task of a model with losses by name. `inputs` of the `fields` of an element are the model's; those behind the
/// targets, none, one or one for each target, are weights.
Task task_of_outputs(Layer& model, const Losses& losses, std::vector<std::string> outputs, OutputsOf call,
                     std::size_t inputs, std::size_t fields);
/// The number of inputs among `fields` fields; `taken`: numbers that the model takes. Throws if none fits.
std::size_t inputs_beside_outputs(std::size_t fields, std::size_t outputs, bool sample_weight,
                                  const std::vector<std::size_t>& taken);

template <std::size_t N, class M> Task task_of_named(const M& model, const Losses& losses, bool sample_weight) {
  std::vector<std::size_t> taken;
  const auto for_each_number = [](auto visit) {
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (visit(std::integral_constant<std::size_t, i + 1>()), ...);
    }(std::make_index_sequence<N - 1>());
  };
  for_each_number([&]<std::size_t n>(std::integral_constant<std::size_t, n>) {
    if constexpr (Accepts<M, n>) taken.push_back(n);
  });
  const std::size_t inputs = inputs_beside_outputs(N, losses.entries().size(), sample_weight, taken);
  Task task;
  for_each_number([&]<std::size_t n>(std::integral_constant<std::size_t, n>) {
    if constexpr (Accepts<M, n>) {
      using R = std::remove_cvref_t<with_tensors_t<const M, n>>;
      if constexpr (NamedOutputs<R>)
        if (n == inputs)
          task = task_of_outputs(
              model.layer_behind(), losses, losses.outputs(output_names<R>()),
              [&model](In in) { return named_outputs(call_with<n>(model, in)); }, inputs, N);
    }
  });
  require(static_cast<bool>(task.examine), "Losses: the model's result for ", inputs,
          " inputs has no names: it gives no struct, map, tuple or array of tensors");
  return task;
}

/// The model of a step of one's own is built for all fields but the last, or for all, if it takes that number.
template <std::size_t N, class M> Task task_of_steps(const M& model) {
  Task task{.fields = N};
  task.build = [&model](const std::vector<Spec>& specs, CallMode mode) {
    if (model.layer_behind().is_built()) return true;
    if constexpr (N >= 2 && Accepts<M, N - 1>)
      return build_all(model.layer_behind(), std::span(specs).first(N - 1), mode);
    else if constexpr (Accepts<M, N>) return build_all(model.layer_behind(), specs, mode);
    else fail_unbuilt();
  };
  return task;
}

}  // namespace detail

/// InvalidArgument, opened by `what`, for a data set of these specs that was not batched, unless that is declared; see
/// fit.
void check_batched(std::string_view what, const std::vector<Spec>& specs, std::optional<int> batchings, bool unbatched);

/// The task of training `model` by `loss`, which may be Losses, or a step of the user's own. Both must outlive it.
template <std::size_t N, class M, class L>
detail::Task task_of(const M& model, const L& loss, bool sample_weight, const ClassWeights& class_weights = {}) {
  if constexpr (detail::StepOn<L, N>) {
    detail::Task task = detail::task_of_steps<N>(model);
    task.train = detail::erased_step<N>(loss);
    return task;
  } else if constexpr (std::same_as<L, TrainingSteps>) {
    detail::Task task = detail::task_of_steps<N>(model);
    task.train = loss.train.call("training", N);
    task.test = loss.test.call("test", N);
    task.optimizers = loss.optimizers;
    return task;
  } else if constexpr (std::same_as<L, Losses>) {
    if (!class_weights.empty()) detail::fail_class_weights();
    return detail::task_of_named<N>(model, loss, sample_weight);
  } else {
    detail::Task task{.fields = N};
    constexpr bool plain = detail::Accepts<M, N - 1>, weighted = N >= 3 && detail::Accepts<M, N - 2>;
    constexpr std::size_t without = N - 1, with = N >= 3 ? N - 2 : 0;
    const auto examined_with = [&]<std::size_t inputs>(std::integral_constant<std::size_t, inputs>) {
      task.examine = [&model, &loss, class_weights](In fields) {
        return detail::examine<inputs, N>(model, loss, class_weights, fields);
      };
    };
    if (sample_weight) {
      if constexpr (weighted) examined_with(std::integral_constant<std::size_t, with>());
      else detail::fail_fields(N, without, true);
    } else {
      if constexpr (plain) examined_with(std::integral_constant<std::size_t, without>());
      else detail::fail_fields(N, with, false);
    }
    const std::size_t inputs = sample_weight ? with : without;
    task.build = [&model, inputs](const std::vector<Spec>& specs, CallMode mode) {
      return build_all(model.layer_behind(), std::span(specs).first(inputs), mode);
    };
    return task;
  }
}

}  // namespace gradus
