/// The formulas, on logits wherever they are known: log-sum-exp loses nothing where softmax would round to 0 or 1.
#include "gradus/nn/losses.h"
#include <atomic>
#include "gradus/base/notice.h"
#include "gradus/nn/loss_parts.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/logits.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

std::string_view name_of(const Node* node) { return node->op ? node->op->name : std::string_view(); }

const Node* behind_views(const Node* node) {
  const auto passes = [](const Node& n) {
    if (n.inputs.size() == 1) return n.op.is_view() || n.op.is_alias() || name_of(&n) == "cast";
    return name_of(&n) == "guard_zero_weight";
  };
  while (passes(*node)) node = node->inputs[0].get();
  return node;
}

void check_floats(std::string_view op, const Tensor& prediction) {
  require(is_floating(prediction.dtype()), op, ": the prediction is ", prediction.spec(), ", expected a floating type");
}

/// A loss whose prediction should not have been through a softmax, and whether that was noticed.
struct RepeatedCheck {
  std::string_view op, layer;
  std::atomic<bool> was_noticed{false};
};
RepeatedCheck repeated_checks[]{{"categorical_crossentropy", "softmax"},
                                {"sparse_categorical_crossentropy", "softmax"},
                                {"binary_crossentropy", "sigmoid"}};
std::atomic<RepeatedSoftmax> repeated_softmax{RepeatedSoftmax::refused};

void answer_repeated(RepeatedCheck& check) {
  const std::string message =
      text(check.op, ": the prediction is the output of a ", check.layer, ", which from_logits ",
           repeated_softmax == RepeatedSoftmax::refused ? "would apply" : "applies",
           " again; say from_probabilities, or better, leave the ", check.layer, " out");
  if (repeated_softmax == RepeatedSoftmax::refused) throw InvalidArgument(message);
  if (!check.was_noticed.exchange(true)) notice(text("gradus: ", message, '\n'));
}

Tensor without_last(const Tensor& x) { return squeeze(x, {-1}); }

}  // namespace

RepeatedSoftmax set_repeated_softmax(RepeatedSoftmax answer) {
  for (RepeatedCheck& check : repeated_checks) check.was_noticed = false;
  return repeated_softmax.exchange(answer);
}

bool detail::is_softmax(const Tensor& x) {
  if (!x.defined()) return false;
  const Node* quotient = behind_views(x.node().get());
  if (name_of(quotient) != "divide") return false;
  const Node* numerator = quotient->inputs[0].get();
  const Node* sum = behind_views(quotient->inputs[1].get());
  if (name_of(numerator) != "exp" || name_of(sum) != "sum") return false;
  const Node* summand = behind_views(sum->inputs[0].get());
  return name_of(summand) == "exp" && summand->inputs[0].get() == numerator->inputs[0].get();
}

bool detail::is_sigmoid(const Tensor& x) { return x.defined() && name_of(behind_views(x.node().get())) == "sigmoid"; }

void detail::check_same_shape(std::string_view op, const Tensor& y, const Tensor& prediction) {
  check_floats(op, prediction);
  require(y.shape() == prediction.shape(), op, ": y is ", y.spec(), ", the prediction ", prediction.spec(),
          ": their shapes must agree; reshape(y, ...) or squeeze(prediction) makes them");
}

void detail::check_labels(std::string_view op, const Tensor& y, const Tensor& prediction) {
  check_classes(op, prediction);
  Shape expected = prediction.shape();
  expected.erase(-1);
  require(is_integer(y.dtype()), op, ": y is ", y.spec(), ", expected classes as integers",
          y.shape() == prediction.shape() ? "; for one-hot rows take the categorical one, without `sparse`" : "");
  require(y.shape() == expected, op, ": y is ", y.spec(), ", but a prediction of ", prediction.spec(),
          " needs one label a row, ", Spec{y.dtype(), expected});
}

Tensor detail::fitted_weight(std::string_view op, const Tensor& sample_weight, const Tensor& per_example) {
  const Shape& shape = per_example.shape();
  const int rank = sample_weight.shape().rank();
  bool fits = rank <= shape.rank();
  for (int axis = 0; fits && axis < rank; ++axis) fits = sample_weight.shape()[axis] == shape[axis];
  require(fits, op, ": sample_weight is ", sample_weight.spec(), ", expected one number per example, ",
          per_example.spec(), ", or per row of axis 0");
  Tensor weight =
      sample_weight.dtype() == per_example.dtype() ? sample_weight : cast(sample_weight, per_example.dtype());
  if (rank == shape.rank()) return weight;
  Shape padded = weight.shape();
  while (padded.rank() < shape.rank()) padded.push_back(1);
  return broadcast_to(reshape(weight, padded), shape);
}

Tensor detail::categorical_crossentropy(const Tensor& y, const Tensor& prediction, bool logits) {
  constexpr std::string_view op = "categorical_crossentropy";
  check_classes(op, prediction);
  check_same_shape(op, y, prediction);
  const Tensor targets = as_targets(y, prediction);
  if (logits) {
    if (is_softmax(prediction)) answer_repeated(repeated_checks[0]);
    const LogitRows row(prediction);
    return without_last(row.log_sum) * reduce_sum(targets, {.axis = {-1}}) -
           reduce_sum(multiply_no_nan(row.shifted, targets), {.axis = {-1}});
  }
  return -reduce_sum(targets * log(clipped(shares_of(prediction))), {.axis = {-1}});
}

/// The label's logit is picked by a mask, which fuses with all the rest; its gradient is softmax - onehot.
Tensor detail::sparse_categorical_crossentropy(const Tensor& y, const Tensor& prediction, bool logits) {
  constexpr std::string_view op = "sparse_categorical_crossentropy";
  check_labels(op, y, prediction);
  if (logits && is_softmax(prediction)) answer_repeated(repeated_checks[1]);
  const LogitRows row(logits ? prediction : log(clipped(prediction)));
  const std::int64_t classes = prediction.shape().back();
  const Tensor labels = check_range(as_indices("loss", y), classes, true);
  const Tensor chosen = equal(expand_dims(labels, -1), range(classes, labels.dtype()));
  return without_last(row.log_sum) - reduce_sum(where(chosen, row.shifted, 0), {.axis = {-1}});
}

/// On logits: max(x, 0) - x y + log(1 + exp(-|x|)), which never overflows; of an infinite logit 0 where y agrees.
Tensor detail::binary_crossentropy(const Tensor& y, const Tensor& prediction, bool logits) {
  constexpr std::string_view op = "binary_crossentropy";
  check_same_shape(op, y, prediction);
  const Tensor targets = as_targets(y, prediction);
  if (!logits) {
    const Tensor p = clipped(prediction);
    return mean_of_last(-(targets * log(p) + (1 - targets) * log(1 - p)));
  }
  if (is_sigmoid(prediction)) answer_repeated(repeated_checks[2]);
  return mean_of_last(sigmoid_crossentropy(prediction, targets));
}

Tensor mean_squared_error(const Tensor& y, const Tensor& prediction) {
  check_same_shape("mean_squared_error", y, prediction);
  return mean_of_last(square(as_targets(y, prediction) - prediction));
}

Tensor mean_absolute_error(const Tensor& y, const Tensor& prediction) {
  check_same_shape("mean_absolute_error", y, prediction);
  return mean_of_last(abs(as_targets(y, prediction) - prediction));
}

Tensor detail::weight_beside(const Tensor& weight, const Tensor& x, const std::optional<std::vector<int>>& taken_over) {
  const int rank = x.shape().rank();
  std::uint32_t over = 0;
  if (taken_over) {
    for (const int axis : *taken_over) over |= 1u << x.shape().normalized(axis);
    if (taken_over->empty()) over = ~0u;
  }
  Shape beside;
  int next = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const bool is_own = !(over >> axis & 1) && next < weight.shape().rank();
    if (is_own && weight.shape()[next] != x.shape()[axis]) return {};
    beside.push_back(is_own ? weight.shape()[next++] : 1);
  }
  if (next < weight.shape().rank()) return {};
  return broadcast_to(reshape(weight, beside), x.shape());
}

Tensor detail::joint_weight(const Tensor& sample_weight, const Tensor& mask, DType prediction) {
  if (!mask.defined()) return sample_weight;
  if (!sample_weight.defined()) return cast(mask, computed_in(prediction));
  const DType t = is_floating(sample_weight.dtype()) ? sample_weight.dtype() : computed_in(prediction);
  const int rank = std::max(sample_weight.shape().rank(), mask.shape().rank());
  const auto spread = [&](Tensor x) {
    while (x.shape().rank() < rank) x = expand_dims(x, -1);
    return x;
  };
  return multiply_no_nan(spread(cast(sample_weight, t)), cast(spread(mask), t));
}

Tensor detail::is_left_out(const Tensor& weight) {
  return weight.dtype() == boolean ? logical_not(weight) : equal(weight, 0);
}

Tensor detail::labels_that_count(const Tensor& y, const Tensor& weight) {
  if (!weight.defined() || !is_integer(y.dtype())) return y;
  const Tensor beside = weight_beside(weight, y);
  return beside.defined() ? where(is_left_out(beside), fill_like(y, 0), y) : y;
}

Loss LossFunction::of(std::string_view op, const Tensor& y, const Tensor& prediction, const Tensor& sample_weight,
                      const Tensor& steps) const {
  require(static_cast<bool>(rule_), "this loss is empty: it was moved from; use the one that it was moved to");
  Tensor weight = sample_weight.defined() ? cast(sample_weight, prediction.dtype()) : sample_weight;
  if (examples_.counts) {
    const Tensor counts = cast(examples_.counts(y, prediction), prediction.dtype());
    weight = weight.defined() ? multiply_no_nan(fitted_weight(op, weight, counts), counts) : counts;
  }
  if (!weight.defined()) return Loss::mean(rule_(y, prediction));
  const auto guarded_by_weight = [&](const Tensor& x) {
    const Tensor beside = weight_beside(weight, x, examples_.taken_over);
    return beside.defined() ? guard_zero_weight(x, cast(beside, x.dtype())) : x;
  };
  const Tensor labels = is_floating(y.dtype()) ? guarded_by_weight(y) : labels_that_count(y, weight);
  const Tensor guarded = guarded_by_weight(prediction);
  const Tensor losses = steps.defined()      ? examples_.of_steps(labels, guarded, steps)
                        : examples_.weighted ? examples_.weighted(labels, guarded, weight)
                                             : rule_(labels, guarded);
  return Loss::mean(losses, fitted_weight(op, weight, losses));
}

/// A sequence without a step that counts is left out.
Loss LossFunction::weighed(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight,
                           const Tensor& mask) const {
  constexpr std::string_view as_weight =
      "loss: the mask of the prediction, which is its weight, does not fit; Lambda(f) drops a mask";
  const bool is_of_steps = mask.defined() && examples_.of_steps && mask.shape().rank() == 2;
  const Tensor weight =
      joint_weight(sample_weight, is_of_steps ? reduce_any(mask, {.axis = {1}}) : mask, prediction.dtype());
  const std::string_view op = mask.defined() && !sample_weight.defined() ? as_weight : "loss";
  return of(op, widened(y), widened(prediction), weight, is_of_steps ? mask : Tensor());
}

Tensor LossFunction::mask_of(const Tensor& prediction, const Tensor& sample_weight) const {
  if (!SequenceMask::is_used()) [[likely]]
    return {};
  const Tensor mask = SequenceMask::of(prediction);
  if (!mask.defined() && !sample_weight.defined())
    lost_mask_.note("a loss", prediction,
                    examples_.remedy.empty()
                        ? "give the places that count as sample_weight: loss(y, prediction, weight)"
                        : examples_.remedy);
  return mask;
}

Loss LossFunction::operator()(const Tensor& y, const Tensor& prediction) const {
  return weighed(y, prediction, {}, mask_of(prediction, {}));
}

Loss LossFunction::operator()(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) const {
  return weighed(y, prediction, sample_weight, mask_of(prediction, sample_weight));
}

CategoricalCrossentropy::CategoricalCrossentropy(bool logits, SmoothingOptions options)
    : LossFunction([logits, s = options.label_smoothing](const Tensor& y, const Tensor& prediction) {
        if (s == 0) return detail::categorical_crossentropy(y, prediction, logits);
        check_classes("CategoricalCrossentropy", prediction);
        const std::int64_t classes = prediction.shape().back();
        require(classes > 0, "CategoricalCrossentropy: label_smoothing needs a known number of classes, got ",
                prediction.spec());
        const Tensor targets = smoothed(as_targets(y, prediction), s, 1 / static_cast<double>(classes));
        return detail::categorical_crossentropy(targets, prediction, logits);
      }) {
  check_options("CategoricalCrossentropy", options);
}

BinaryCrossentropy::BinaryCrossentropy(bool logits, SmoothingOptions options)
    : LossFunction([logits, s = options.label_smoothing](const Tensor& y, const Tensor& prediction) {
        return detail::binary_crossentropy(smoothed(as_targets(y, prediction), s, 0.5), prediction, logits);
      }) {
  check_options("BinaryCrossentropy", options);
}

LossFunction::Examples SparseCategoricalCrossentropy::not_ignored(const IgnoreOptions& options) {
  if (!options.ignore_class) return {};
  return {.counts = [ignored = *options.ignore_class](const Tensor& y, const Tensor& prediction) {
    check_labels("SparseCategoricalCrossentropy", y, prediction);
    return not_equal(as_indices("loss", y), ignored);
  }};
}

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(bool logits, IgnoreOptions options)
    : LossFunction(
          [logits](const Tensor& y, const Tensor& prediction) {
            return detail::sparse_categorical_crossentropy(y, prediction, logits);
          },
          not_ignored(options)) {}

MeanSquaredError::MeanSquaredError()
    : LossFunction([](const Tensor& y, const Tensor& prediction) { return mean_squared_error(y, prediction); }) {}

Huber::Huber() : Huber(HuberOptions{}) {}
Huber::Huber(HuberOptions options)
    : LossFunction([delta = options.delta](const Tensor& y, const Tensor& prediction) {
        return huber(y, prediction, {.delta = delta});
      }) {
  check_options("Huber", options);
}

}  // namespace gradus
