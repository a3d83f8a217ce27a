/// What the formulas of losses share.
#pragma once
#include "gradus/nn/losses.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

namespace gradus {

/// Keras's epsilon.
inline constexpr double smallest_probability = 1e-7;

/// Labels and targets of another dtype are exact in the prediction's.
inline Tensor as_targets(const Tensor& y, const Tensor& prediction) {
  return is_floating(y.dtype()) ? y : cast(y, prediction.dtype());
}

inline Tensor clipped(const Tensor& probabilities) {
  return clip_by_value(probabilities, smallest_probability, 1 - smallest_probability);
}

inline Tensor mean_of_last(const Tensor& x) { return x.shape().rank() <= 1 ? x : reduce_mean(x, {.axis = {-1}}); }

inline Tensor smoothed(const Tensor& y, double smoothing, double share) {
  return smoothing == 0 ? y : y * (1 - smoothing) + smoothing * share;
}

inline void check_classes(std::string_view op, const Tensor& prediction) {
  require(is_floating(prediction.dtype()), op, ": the prediction is ", prediction.spec(), ", expected a float type");
  require(prediction.shape().rank() >= 1, op, ": the prediction is a scalar, expected [batch, classes]");
}

}  // namespace gradus
