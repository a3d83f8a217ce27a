/// Losses of a model with several outputs, by the outputs' names: Keras's dict forms of loss and loss_weights.
///
/// Outputs are the result of the model's operator(): a struct of tensors, whose fields are their names; a
/// std::map<std::string, Tensor>; or an array, pair, tuple or vector, whose outputs are called output_0, output_1, ...
///
///   struct Net {
///     struct Out { Tensor digit, even; };
///     Dense hidden{64, relu}, digit{10}, even{1};
///     Out operator()(Tensor x) const { const Tensor h = hidden(x); return {digit(h), even(h)}; }
///   };
///   const Losses losses({{"digit", SparseCategoricalCrossentropy(from_logits)},
///                        {"even", BinaryCrossentropy(from_logits)}}, {.loss_weights = {{"even", 0.2}}});
///   fit(model, optimizer, losses, dataset, {.metrics = {{"digit", SparseCategoricalAccuracy()}}});
#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "gradus/base/parts.h"
#include "gradus/nn/losses.h"

namespace gradus {

namespace detail {

/// The weights of the examples of one output, each of which may be empty.
struct ExampleWeights {
  Tensor own = {};    // given with the data, or of classes
  Tensor mask = {};   // of the prediction
  Tensor joint = {};  // both
  /// Both together, for a prediction of this dtype.
  static ExampleWeights of(const Tensor& own, const Tensor& mask, DType prediction);
};

[[noreturn]] void fail_weighted_loss(bool only_mask);

/// A loss of any type with these weights.
template <class L, class P>
Loss weighed_loss(const L& loss, const Tensor& y, const P& prediction, const ExampleWeights& weights) {
  if (!weights.joint.defined()) return loss(y, prediction);
  if constexpr (std::derived_from<L, LossFunction>) return loss.weighed(y, prediction, weights.own, weights.mask);
  else if constexpr (std::is_invocable_r_v<Loss, const L&, Tensor, P, Tensor>)
    return loss(y, prediction, weights.joint);
  else fail_weighted_loss(!weights.own.defined());
}

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

template <class T> struct is_tensor : std::is_same<T, Tensor> {};
/// The result of a model whose outputs have names.
template <class R>
concept NamedOutputs = std::same_as<R, Tensor> || std::same_as<R, Tensors> ||
                       (parts::made_of<is_tensor, R>() &&
                        (parts::is_sequence<R> || parts::is_vector<R> || parts::is_map<R> || parts::is_struct<R>));

/// The outputs with their names.
template <NamedOutputs R> NamedTensors named_outputs(const R& result) {
  NamedTensors all;
  if constexpr (std::same_as<R, Tensor>) {
    all.emplace_back("output_0", result);
  } else if constexpr (parts::is_map<R>) {
    for (const auto& [name, tensor] : result) all.emplace_back(name, tensor);
  } else if constexpr (parts::is_sequence<R> || parts::is_vector<R>) {
    parts::for_each(result, [&](const Tensor& each) { all.emplace_back(text("output_", all.size()), each); });
  } else {
    reflect::for_each_field(result, [&](std::string_view name, const Tensor& each) { all.emplace_back(name, each); });
  }
  return all;
}

/// The names of the outputs, if the type says them.
template <class R> std::optional<std::vector<std::string>> output_names() {
  if constexpr (parts::is_map<R> || parts::is_vector<R>) {
    return std::nullopt;
  } else {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : named_outputs(R{})) names.push_back(name);
    return names;
  }
}

}  // namespace detail

/// A loss of one output: an object such as MeanSquaredError(), or a function of (y, prediction) that gives a Loss.
class OutputLoss {
 public:
  template <class L>
    requires(!std::same_as<L, OutputLoss> && std::is_invocable_r_v<Loss, const L&, Tensor, Tensor>)
  OutputLoss(L loss)
      : call_([loss = std::move(loss)](const Tensor& y, const Tensor& prediction, const detail::ExampleWeights& w) {
          return detail::weighed_loss(loss, y, prediction, w);
        }) {}
  OutputLoss(const char*) = delete;  // losses are objects: MeanSquaredError()

  // For the rooms of the library.
  Loss weighed(const Tensor& y, const Tensor& prediction, const detail::ExampleWeights& weights) const {
    return call_(y, prediction, weights);
  }

 private:
  std::function<Loss(const Tensor&, const Tensor&, const detail::ExampleWeights&)> call_;
};

/// The loss of one of the outputs.
struct NamedLoss {
  std::string output;  // its name
  OutputLoss loss;     // its loss
};

/// Options of Losses.
struct LossesOptions {
  std::map<std::string, double> loss_weights = {};  // factors by the outputs' names; 1 for those left out
};

/// The losses of a model's outputs. The loss of the model is their sum, each times its weight. An output without a loss
/// is not trained. An element of a data set for it has a field for each input, then one for each output with a loss, in
/// the order of the model's outputs (for a map, of their names), and with .sample_weight one weight for all of them, or
/// one for each.
///
/// Histories have the loss of each output, unweighted, as <output>_loss. Outputs whose losses count different numbers
/// of examples, such as steps of sequences beside whole sequences, are each a mean of their own, and the sum counts by
/// rows of the batch.
class Losses {
 public:
  /// InvalidArgument for an output that is named twice, a weight of an output without a loss, and a weight that is not
  /// finite. fit and evaluate throw it for an output that the model does not have.
  Losses(std::initializer_list<NamedLoss> losses, LossesOptions options = {})
      : Losses(std::vector<NamedLoss>(losses), std::move(options)) {}
  /// The losses as a list.
  explicit Losses(std::vector<NamedLoss> losses, LossesOptions options = {});

  // For the rooms of the library.
  struct Entry {
    std::string output;
    OutputLoss loss;
    double weight;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  /// The outputs with a loss, in the order of these outputs; of empty `known`, of their names. InvalidArgument for one
  /// that is not known.
  std::vector<std::string> outputs(const std::optional<std::vector<std::string>>& known) const;
  const Entry& of(std::string_view output) const;

 private:
  std::vector<Entry> entries_;
};

namespace detail::inline rooms {

/// One output of an examined batch.
struct ExaminedOutput {
  std::string name;                // of the output
  Loss loss = {};                  // unweighted
  Tensor y = {}, prediction = {};  // its target, its value
  Tensor sample_weight = {};       // with the mask of the prediction; empty: none
};

}  // namespace detail::inline rooms

namespace detail {

/// The sum of the losses, each times its weight, over a batch. `parts_differ`: parts of the batch would not add up.
Loss total_of_outputs(const Losses& losses, const std::vector<ExaminedOutput>& outputs, bool& parts_differ);

}  // namespace detail
}  // namespace gradus
