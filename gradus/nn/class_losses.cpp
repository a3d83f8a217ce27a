/// Focal losses, Dice and Tversky. Logarithms are exact for logits; probabilities are clipped first, as in Keras.
#include "gradus/nn/class_losses.h"
#include <limits>
#include "gradus/nn/loss_parts.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/logits.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// x^gamma for x >= 0
Tensor focus(const Tensor& x, double gamma) { return pow(x, gamma); }

/// The values kept along the axes; none: all of them.
Tensor without(const std::vector<int>& axes, const Tensor& kept) {
  return axes.empty() ? reshape(kept, {}) : squeeze(kept, axes);
}

/// More than any of the sums below comes to.
Tensor several_sums(const Tensor& x, const ReduceOptions& over) { return reduce_sum(abs(stop_gradient(x)), over) * 4; }

}  // namespace

Tensor detail::binary_focal_crossentropy(const Tensor& y, const Tensor& prediction, bool logits,
                                         BinaryFocalOptions options) {
  constexpr std::string_view op = "binary_focal_crossentropy";
  check_same_shape(op, y, prediction);
  check_options(op, options);
  const Tensor t = smoothed(as_targets(y, prediction), options.label_smoothing, 0.5), other = 1 - t;
  const Tensor p = logits ? sigmoid(prediction) : clipped(prediction);
  const Tensor q = logits ? sigmoid(-prediction) : 1 - p;  // the probability of 0
  const Tensor crossentropy = logits ? sigmoid_crossentropy(prediction, t) : -(t * log(p) + other * log(q));
  // Where one of the probabilities is 0 the slope of what is wrong is 0 too, also times an infinite crossentropy.
  const Tensor wrong = t * q + other * p, is_certain = logical_or(equal(p, 0), equal(q, 0));
  const Tensor focused = focus(logits ? where(is_certain, stop_gradient(wrong), wrong) : wrong, options.gamma);
  const Tensor focal = multiply_no_nan(crossentropy, focused);
  if (!options.apply_class_balancing) return mean_of_last(focal);
  return mean_of_last(multiply_no_nan(focal, t * options.alpha + other * (1 - options.alpha)));
}

Tensor detail::categorical_focal_crossentropy(const Tensor& y, const Tensor& prediction, bool logits,
                                              CategoricalFocalOptions options) {
  constexpr std::string_view op = "categorical_focal_crossentropy";
  check_classes(op, prediction);
  check_same_shape(op, y, prediction);
  check_options(op, options);
  const std::int64_t classes = prediction.shape().back();
  require(options.label_smoothing == 0 || classes > 0, op, ": label_smoothing needs a known number of classes, got ",
          prediction.spec());
  const Tensor t = smoothed(as_targets(y, prediction), options.label_smoothing, 1 / static_cast<double>(classes));
  const auto loss = [&](const Tensor& rest, const Tensor& log_p) {
    return -reduce_sum(focus(rest, options.gamma) * options.alpha * multiply_no_nan(log_p, t), {.axis = {-1}});
  };
  if (!logits) {
    const Tensor log_p = log(clipped(shares_of(prediction)));
    return loss(1 - exp(log_p), log_p);
  }
  const LogitRows rows(widened(prediction));
  const Tensor p = cast(exp(rows.shifted) / rows.sum, prediction.dtype());
  // p log(p) tends to 0 with p, so where p is 0 the infinite logarithm pulls at the logarithm alone.
  const Tensor rest = where(equal(p, 0), fill_like(p, 1), 1 - p);
  return loss(rest, cast(rows.shifted - rows.log_sum, prediction.dtype()));
}

Tensor dice(const Tensor& y, const Tensor& prediction, OverlapOptions options) {
  check_same_shape("dice", y, prediction);
  const Tensor t = as_targets(y, prediction);
  const ReduceOptions over{.axis = options.axis, .keepdims = true};
  const auto [p, unit] = InUnits(prediction, several_sums(prediction, over), over);
  const Tensor both = reduce_sum(t * p, over);
  const Tensor all = reduce_sum(t, over) / unit + reduce_sum(p, over) + smallest_probability / unit;
  return without(options.axis, 1 - both * 2 / all);
}

Tensor tversky(const Tensor& y, const Tensor& prediction, TverskyOptions options) {
  check_options("tversky", options);
  check_same_shape("tversky", y, prediction);
  const Tensor t = as_targets(y, prediction);
  const ReduceOptions over{.axis = options.axis, .keepdims = true};
  const auto [p, unit] = InUnits(prediction, several_sums(prediction, over), over);
  const Tensor both = reduce_sum(t * p, over);
  const Tensor false_positives = reduce_sum((1 - t) * p, over) * options.alpha;
  const Tensor false_negatives = reduce_sum(t * (1 / unit - p), over) * options.beta;
  return without(options.axis, 1 - both / (both + false_positives + false_negatives + smallest_probability / unit));
}

namespace {

/// `weight` is empty, or one number an example: those of weight 0 are no references of the others.
Tensor weighted_circle(const Tensor& y, const Tensor& given, const Tensor& weight, const CircleOptions& options) {
  constexpr std::string_view op = "circle";
  check_options(op, options);
  const bool among_themselves = !options.ref_labels.defined() && !options.ref_embeddings.defined();
  const bool leaves_out = weight.defined() && among_themselves && weight.shape() == y.shape();
  const Tensor counts = leaves_out ? not_equal(weight, 0) : Tensor();
  const Tensor prediction =
      leaves_out && given.shape().rank() == 2 ? where(expand_dims(counts, 1), given, fill_like(given, 0)) : given;
  const Tensor labels = options.ref_labels.defined() ? options.ref_labels : y;
  const Tensor others = options.ref_embeddings.defined() ? options.ref_embeddings : prediction;
  check_classes(op, prediction);
  const auto fits = [](const Tensor& l, const Tensor& e) {
    return l.shape().rank() == 1 && e.shape().rank() == 2 && l.shape()[0] == e.shape()[0];
  };
  require(fits(y, prediction), op, ": y is ", y.spec(), ", the prediction ", prediction.spec(),
          ", expected labels [batch] and embeddings [batch, n]");
  require(fits(labels, others) && labels.dtype() == y.dtype(), op, ": the references are ", labels.spec(), " and ",
          others.spec(), ", expected labels [m] as y's and embeddings [m, n]");
  const Tensor distance = maximum(1 - matmul(prediction, transpose(others)), 0);  // [batch, m]
  const Tensor same = equal(expand_dims(y, 1), expand_dims(labels, 0));
  const Tensor rows = iota({distance.shape()[0]}, i64), columns = iota({distance.shape()[1]}, i64);
  const Tensor self = equal(expand_dims(rows, 1), expand_dims(columns, 0));
  Tensor positive = options.remove_diagonal ? logical_and(same, logical_not(self)) : same;
  Tensor negative = logical_not(same);
  if (leaves_out) {
    positive = logical_and(positive, expand_dims(counts, 0));
    negative = logical_and(negative, expand_dims(counts, 0));
  }
  const double margin = options.margin, gamma = options.gamma;
  const Tensor far = maximum(distance + margin, 0) * (distance - margin) * gamma;
  const Tensor near = multiply_no_nan(1 - margin - distance, maximum(1 + margin - distance, 0)) * gamma;
  const Tensor never = fill_like(distance, -std::numeric_limits<double>::infinity());
  const ReduceOptions row{.axis = {1}};
  return softplus(reduce_logsumexp(where(positive, far, never), row) +
                  reduce_logsumexp(where(negative, near, never), row));
}

}  // namespace

Tensor circle(const Tensor& y, const Tensor& prediction, CircleOptions options) {
  return weighted_circle(y, prediction, {}, options);
}

Tensor categorical_generalized_cross_entropy(const Tensor& y, const Tensor& prediction, GeneralizedOptions options) {
  constexpr std::string_view op = "categorical_generalized_cross_entropy";
  check_options(op, options);
  check_labels(op, y, prediction);
  const Tensor classes = iota({prediction.shape().back()}, i64);
  const Tensor chosen = equal(classes, expand_dims(cast(y, i64), -1));
  const Tensor p = reduce_sum(where(chosen, prediction, 0), {.axis = {-1}});
  return (1 - pow(p, options.q)) / options.q;
}

BinaryFocalCrossentropy::BinaryFocalCrossentropy(bool logits, BinaryFocalOptions options)
    : LossFunction([logits, options](const Tensor& y, const Tensor& p) {
        return detail::binary_focal_crossentropy(y, p, logits, options);
      }) {
  check_options("BinaryFocalCrossentropy", options);
}
CategoricalFocalCrossentropy::CategoricalFocalCrossentropy(bool logits, CategoricalFocalOptions options)
    : LossFunction([logits, options](const Tensor& y, const Tensor& p) {
        return detail::categorical_focal_crossentropy(y, p, logits, options);
      }) {
  check_options("CategoricalFocalCrossentropy", options);
}
Dice::Dice() : Dice(OverlapOptions{}) {}
Dice::Dice(OverlapOptions options)
    : LossFunction([options](const Tensor& y, const Tensor& p) { return dice(y, p, options); },
                   {.taken_over = options.axis}) {}
Tversky::Tversky() : Tversky(TverskyOptions{}) {}
Tversky::Tversky(TverskyOptions options)
    : LossFunction([options](const Tensor& y, const Tensor& p) { return tversky(y, p, options); },
                   {.taken_over = options.axis}) {
  check_options("Tversky", options);
}
Circle::Circle() : Circle(CircleOptions{}) {}
Circle::Circle(CircleOptions options)
    : LossFunction([options](const Tensor& y, const Tensor& p) { return circle(y, p, options); },
                   {.weighted = [options](const Tensor& y, const Tensor& p, const Tensor& weight) {
                     return weighted_circle(y, p, weight, options);
                   }}) {
  check_options("Circle", options);
}
CategoricalGeneralizedCrossEntropy::CategoricalGeneralizedCrossEntropy()
    : CategoricalGeneralizedCrossEntropy(GeneralizedOptions{}) {}
CategoricalGeneralizedCrossEntropy::CategoricalGeneralizedCrossEntropy(GeneralizedOptions options)
    : LossFunction([options](const Tensor& y, const Tensor& p) {
        return categorical_generalized_cross_entropy(y, p, options);
      }) {
  check_options("CategoricalGeneralizedCrossEntropy", options);
}
CTC::CTC() : CTC(CtcOptions{}) {}
CTC::CTC(CtcOptions options)
    : LossFunction([options](const Tensor& y, const Tensor& p) { return ctc(y, p, options); },
                   {.of_steps =
                        [options](const Tensor& y, const Tensor& p, const Tensor& mask) {
                          return ctc(y, p, {.mask_index = options.mask_index, .mask = mask});
                        },
                    .remedy = "give the steps that count: ctc(y, prediction, {.mask = m})"}) {
  check_options("CTC", options);
  require(!options.mask.defined(),
          "CTC: a mask belongs to one prediction, whose own mask is taken; for another one call ctc(y, prediction, "
          "{.mask = m})");
}

}  // namespace gradus
