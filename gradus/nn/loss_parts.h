/// Parts that the formulas of losses share.
#pragma once
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"

namespace gradus {

/// Keras's epsilon.
inline constexpr double smallest_probability = 1e-7;

/// Labels and targets in the prediction's dtype, as Keras casts them: NumPy's are f64 by default.
inline Tensor as_targets(const Tensor& y, const Tensor& prediction) {
  return y.dtype() == prediction.dtype() ? y : cast(y, prediction.dtype());
}

inline Tensor clipped(const Tensor& probabilities) {
  return clip_by_value(probabilities, smallest_probability, 1 - smallest_probability);
}

inline Tensor mean_of_last(const Tensor& x) { return x.shape().rank() <= 1 ? x : reduce_mean(x, {.axis = {-1}}); }

inline Tensor smoothed(const Tensor& y, double smoothing, double share) {
  return smoothing == 0 ? y : y * (1 - smoothing) + smoothing * share;
}

/// A row in units in which its sums are finite, so that limits and large numbers do not become inf / inf. The unit is 1
/// where they are finite anyway. A row with one infinity becomes 1 there and 0 elsewhere, so no gradient passes. With
/// several infinities there is no limit, so the row is NaN.
struct InUnits {
  Tensor x, unit;  // unit: 1 along the axes that `along` names, which sets .keepdims

  /// `total` decides: it is infinite where a sum along the row is.
  InUnits(const Tensor& given, const Tensor& total, const ReduceOptions& along) {
    const Tensor one = fill_like(total, 1), overflows = is_inf(total);
    unit = where(overflows, stop_gradient(reduce_max(abs(given), along)), one);
    const Tensor is_limit = is_inf(unit), all = broadcast_to(is_limit, given.shape());
    x = where(logical_and(all, is_inf(given)), sign(given), given / unit);
    const Tensor is_several = logical_and(is_limit, one < reduce_sum(abs(stop_gradient(x)), along));
    x = x * where(is_several, fill_like(one, std::numeric_limits<double>::quiet_NaN()), one);
  }
};

/// Probabilities scaled to the sum 1.
inline Tensor shares_of(const Tensor& probabilities) {
  const ReduceOptions row{.axis = {-1}, .keepdims = true};
  const Tensor p = InUnits(probabilities, reduce_sum(probabilities, row), row).x;
  return p / reduce_sum(p, row);
}

inline void check_classes(std::string_view op, const Tensor& prediction) {
  require(is_floating(prediction.dtype()), op, ": the prediction is ", prediction.spec(), ", expected a float type");
  require(prediction.shape().rank() >= 1, op, ": the prediction is a scalar, expected [batch, classes]");
}

}  // namespace gradus
