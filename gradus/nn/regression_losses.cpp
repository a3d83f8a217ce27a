/// The formulas, each as in Keras.
#include "gradus/nn/regression_losses.h"
#include <limits>
#include <numbers>
#include "gradus/nn/loss_parts.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/special.h"

namespace gradus {
namespace {

/// y as numbers beside the prediction, of its shape.
Tensor targets(std::string_view op, const Tensor& y, const Tensor& prediction) {
  check_same_shape(op, y, prediction);
  return as_targets(y, prediction);
}

/// 0 and 1 as -1 and 1, if there are no others in examples that count: the weight may be empty.
Tensor signs(std::string_view op, const Tensor& y, const Tensor& prediction, const Tensor& weight) {
  const Tensor t = targets(op, y, prediction);
  Tensor zero_or_one = logical_or(equal(t, 0), equal(t, 1));
  if (const Tensor beside = weight.defined() ? weight_beside(weight, t) : Tensor(); beside.defined())
    zero_or_one = logical_or(zero_or_one, is_left_out(beside));
  return where(reduce_all(zero_or_one), t * 2 - 1, t);
}

Tensor margin(std::string_view op, const Tensor& y, const Tensor& prediction, const Tensor& weight = {}) {
  return maximum(1 - multiply_no_nan(prediction, signs(op, y, prediction, weight)), 0);
}

/// x over its length along `axis`, which counts as at least 1e-12.
Tensor normalized(const Tensor& x, int axis) {
  const ReduceOptions along{.axis = {axis}, .keepdims = true};
  const Tensor scaled = InUnits(x, stop_gradient(norm(x, along)), along).x;
  return divide_no_nan(scaled, maximum(norm(scaled, along), 1e-12));  // f16 rounds that to 0
}

}  // namespace

Tensor mean_absolute_percentage_error(const Tensor& y, const Tensor& prediction) {
  const Tensor t = targets("mean_absolute_percentage_error", y, prediction);
  const Tensor size = maximum(abs(t), smallest_probability), error = (t - prediction) / size;
  const Tensor unit = where(is_inf(t), sign(t), t / size);  // where the difference is infinite its quotient is finite
  return mean_of_last(abs(where(is_inf(t - prediction), unit - prediction / size, error))) * 100;
}

Tensor mean_squared_logarithmic_error(const Tensor& y, const Tensor& prediction) {
  const Tensor t = targets("mean_squared_logarithmic_error", y, prediction);
  // The slope at infinity is 0, not 0 times an infinite error.
  const auto logarithm = [](const Tensor& x) {
    const Tensor is_infinite = equal(x, std::numeric_limits<double>::infinity());
    return where(is_infinite, stop_gradient(x),
                 log1p(maximum(where(is_infinite, fill_like(x, 0), x), smallest_probability)));
  };
  return mean_of_last(square(logarithm(prediction) - logarithm(t)));
}

Tensor log_cosh(const Tensor& y, const Tensor& prediction) {
  const Tensor error = prediction - targets("log_cosh", y, prediction);
  // Far below 0 the two cancel to -error: exactly so, or to inf - inf.
  const Tensor both = where(error < -1000, -error, error + softplus(error * -2));
  return mean_of_last(both - std::numbers::ln2);
}

Tensor huber(const Tensor& y, const Tensor& prediction, HuberOptions options) {
  const double delta = options.delta;
  check_options("huber", options);
  const Tensor error = targets("huber", y, prediction) - prediction, size = abs(error), within = size <= delta;
  const Tensor small = where(within, error, fill_like(error, 0));  // the square of a large one has an infinite slope
  return mean_of_last(where(within, square(small) * 0.5, (size - delta / 2) * delta));
}

Tensor hinge(const Tensor& y, const Tensor& prediction) { return mean_of_last(margin("hinge", y, prediction)); }

Tensor squared_hinge(const Tensor& y, const Tensor& prediction) {
  return mean_of_last(square(margin("squared_hinge", y, prediction)));
}

Tensor categorical_hinge(const Tensor& y, const Tensor& prediction) {
  constexpr std::string_view op = "categorical_hinge";
  check_classes(op, prediction);
  const Tensor t = targets(op, y, prediction);
  const Tensor right = reduce_sum(multiply_no_nan(prediction, t), {.axis = {-1}});
  const Tensor wrong = reduce_max(multiply_no_nan(prediction, 1 - t), {.axis = {-1}});
  return maximum(wrong - right + 1, 0);
}

Tensor kl_divergence(const Tensor& y, const Tensor& prediction) {
  constexpr std::string_view op = "kl_divergence";
  check_classes(op, prediction);
  const auto bounded = [](const Tensor& x) { return clip_by_value(x, smallest_probability, 1); };
  const Tensor t = bounded(targets(op, y, prediction));
  return reduce_sum(t * log(t / bounded(prediction)), {.axis = {-1}});
}

Tensor poisson(const Tensor& y, const Tensor& prediction) {
  const Tensor t = targets("poisson", y, prediction);
  const Tensor is_limit = logical_and(equal(prediction, std::numeric_limits<double>::infinity()), is_finite(t));
  const Tensor rate = where(is_limit, fill_like(prediction, 1), prediction);  // its logarithm is small beside it
  return mean_of_last(prediction - t * log(rate + smallest_probability));
}

Tensor cosine_similarity(const Tensor& y, const Tensor& prediction, int axis) {
  constexpr std::string_view op = "cosine_similarity";
  check_classes(op, prediction);
  return -reduce_sum(normalized(targets(op, y, prediction), axis) * normalized(prediction, axis), {.axis = {axis}});
}

MeanAbsolutePercentageError::MeanAbsolutePercentageError()
    : LossFunction([](const Tensor& y, const Tensor& p) { return mean_absolute_percentage_error(y, p); }) {}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError()
    : LossFunction([](const Tensor& y, const Tensor& p) { return mean_squared_logarithmic_error(y, p); }) {}
LogCosh::LogCosh() : LossFunction([](const Tensor& y, const Tensor& p) { return log_cosh(y, p); }) {}
Hinge::Hinge()
    : LossFunction(hinge, {.weighted = [](const Tensor& y, const Tensor& p, const Tensor& weight) {
                     return mean_of_last(margin("hinge", y, p, weight));
                   }}) {}
SquaredHinge::SquaredHinge()
    : LossFunction(squared_hinge, {.weighted = [](const Tensor& y, const Tensor& p, const Tensor& weight) {
                     return mean_of_last(square(margin("squared_hinge", y, p, weight)));
                   }}) {}
CategoricalHinge::CategoricalHinge()
    : LossFunction([](const Tensor& y, const Tensor& p) { return categorical_hinge(y, p); }) {}
KLDivergence::KLDivergence() : LossFunction([](const Tensor& y, const Tensor& p) { return kl_divergence(y, p); }) {}
Poisson::Poisson() : LossFunction([](const Tensor& y, const Tensor& p) { return poisson(y, p); }) {}
CosineSimilarity::CosineSimilarity() : CosineSimilarity(CosineSimilarityOptions{}) {}
CosineSimilarity::CosineSimilarity(CosineSimilarityOptions options)
    : LossFunction([axis = options.axis](const Tensor& y, const Tensor& p) { return cosine_similarity(y, p, axis); },
                   {.taken_over = std::vector<int>{options.axis}}) {}

}  // namespace gradus
