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
#include "gradus/gradients/loss.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/module.h"

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
  using type = with_tensors_t<const M, N - 1>;  // the prediction
};
template <class M, std::size_t N>
  requires(N >= 3) && (!detail::Accepts<M, N - 1>) && detail::Accepts<M, N - 2>
struct prediction<M, N> {
  using type = with_tensors_t<const M, N - 2>;  // the prediction
};
/// The prediction of M for an element of N fields.
template <class M, std::size_t N> using prediction_t = typename prediction<M, N>::type;

/// A callable that gives a Loss from (y, prediction) and, if there are weights or the prediction has a mask, from (y,
/// prediction, sample_weight).
template <class L, class M, std::size_t N>
concept LossFor = std::derived_from<M, Module> && std::is_invocable_r_v<Loss, const L&, Tensor, prediction_t<M, N>>;

namespace detail {

template <class D> constexpr std::size_t fields_of = 0;
template <std::size_t N> constexpr std::size_t fields_of<Dataset<N>> = N;

/// True if these can be trained or evaluated together. If not, it does not compile, and the message tells why.
template <class M, class L, class D> constexpr bool fit_together() {
  constexpr std::size_t n = fields_of<D>;
  if constexpr (!std::derived_from<M, Module>) {
    static_assert(std::is_void_v<M>, "the first argument is a model: a Sequential, or Model<Net>");
  } else if constexpr (n == 0) {
    static_assert(
        std::is_void_v<D>,
        "data is a data set: data::from_tensor_slices(x, y).batch(32); one of strings is mapped to numbers before");
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

}  // namespace detail

/// The result of one batch through model and loss.
struct Examined {
  Loss loss = {};                  // without the penalties
  Tensor y = {}, prediction = {};  // the prediction is empty for a model with several outputs
  Tensor sample_weight = {};       // empty: none; includes the mask of the prediction
  Tensor penalty = {};             // on the model's variables: a scalar; empty: none
  Tensor activity_penalty = {};    // on the results of its layers, the mean over the rows of this batch; empty: none
  Loss total() const;              // the loss that is minimised, with penalties
};

/// Model, loss and fields of a training.
struct Task {
  std::size_t fields = 0;  // number of fields of an element
  /// Calls the model and the loss, in the mode of the caller.
  std::function<Examined(In fields)> examine = {};
  /// Makes the variables for elements of these specs, as build_all.
  std::function<bool(const std::vector<Spec>&, CallMode mode)> build = {};
};

/// Builds a model for these inputs. In a built model it builds the layers that calls in this mode run besides, if their
/// sizes are known. True if all of it is built now.
bool build_all(Layer& model, std::span<const Spec> inputs, CallMode mode);

namespace detail {

/// Throws: elements of `fields` fields do not fit, with or without a weight.
[[noreturn]] void fail_fields(std::size_t fields, std::size_t inputs, bool sample_weight);
[[noreturn]] void fail_weighted_loss(bool only_mask);
/// x with 0 for values that are not finite in examples of weight 0, so that they reach no gradient of the model.
Tensor without_left_out(const Tensor& x, const Tensor& weight);
/// Adds the penalties that the model's layers ask for, and clears them.
void add_penalties(Examined& examined, const Layer& model);

template <std::size_t inputs, std::size_t N, class M, class L>
Examined examine(const M& model, const L& loss, In fields) {
  const StepScope call(model.layer_behind());
  Tensors given(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(inputs));
  if constexpr (inputs + 2 == N)
    for (Tensor& x : given) x = without_left_out(x, fields[inputs + 1]);
  auto prediction = call_with<inputs>(model, given);
  Examined result{.y = fields[inputs]};
  if constexpr (inputs + 2 == N) result.sample_weight = fields[inputs + 1];
  [[maybe_unused]] const Tensor own_weight = result.sample_weight;
  [[maybe_unused]] Tensor mask;
  if constexpr (std::same_as<decltype(prediction), Tensor>) {
    mask = SequenceMask::of(prediction);
    result.sample_weight = joint_weight(own_weight, mask, prediction.dtype());
  }
  if (!result.sample_weight.defined()) result.loss = loss(result.y, prediction);
  else if constexpr (std::derived_from<L, LossFunction>)
    result.loss = loss.weighed(result.y, prediction, own_weight, mask);
  else if constexpr (std::is_invocable_r_v<Loss, const L&, Tensor, decltype(prediction), Tensor>)
    result.loss = loss(result.y, prediction, result.sample_weight);
  else fail_weighted_loss(inputs + 2 != N);
  if constexpr (std::same_as<decltype(prediction), Tensor>) result.prediction = std::move(prediction);
  add_penalties(result, model.layer_behind());
  return result;
}

}  // namespace detail

/// InvalidArgument, opened by `what`, for a data set of these specs that was not batched, unless that is declared; see
/// fit.
void check_batched(std::string_view what, const std::vector<Spec>& specs, std::optional<int> batchings, bool unbatched);

/// The task of training `model` by `loss`. Both must outlive it.
template <std::size_t N, class M, class L> Task task_of(const M& model, const L& loss, bool sample_weight) {
  Task task{.fields = N};
  constexpr bool plain = detail::Accepts<M, N - 1>, weighted = N >= 3 && detail::Accepts<M, N - 2>;
  constexpr std::size_t without = N - 1, with = N >= 3 ? N - 2 : 0;
  if (sample_weight) {
    if constexpr (weighted) task.examine = [&](In fields) { return detail::examine<with, N>(model, loss, fields); };
    else detail::fail_fields(N, without, true);
  } else {
    if constexpr (plain) task.examine = [&](In fields) { return detail::examine<without, N>(model, loss, fields); };
    else detail::fail_fields(N, with, false);
  }
  const std::size_t inputs = sample_weight ? with : without;
  task.build = [&model, inputs](const std::vector<Spec>& specs, CallMode mode) {
    return build_all(model.layer_behind(), std::span(specs).first(inputs), mode);
  };
  return task;
}

}  // namespace gradus
