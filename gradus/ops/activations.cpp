/// Activations composed of other ops.
#include "gradus/ops/activations.h"
#include <cmath>
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/slopes.h"

namespace gradus {
namespace {

/// x within low and high; a gradient flows strictly between them alone.
Tensor strictly_within(const Tensor& x, double low, double high) {
  const Tensor between = logical_and(fill_like(x, low) < x, x < fill_like(x, high));
  return where(between, x, stop_gradient(minimum(fill_like(x, high), maximum(fill_like(x, low), x))));
}

/// alpha (exp(x * inner) - 1) of the negative part, so that the branch not taken cannot overflow.
Tensor exponential_branch(const Tensor& x, double alpha, double inner) {
  const Tensor zero = zeros_like(x), below = expm1(minimum(x * inner, zero)) * alpha;
  return where(x > zero, x, below);
}

}  // namespace

Tensor relu6(const Tensor& x) { return strictly_within(require_floating(x, "relu6"), 0, 6); }

Tensor hard_sigmoid(const Tensor& x) { return hard_sigmoid(x, HardSigmoidOptions{}); }
Tensor hard_sigmoid(const Tensor& x, HardSigmoidOptions options) {
  check_options("hard_sigmoid", options);
  require_floating(x, "hard_sigmoid");
  return in_computed_dtype(
      x, [&](const Tensor& wide) { return strictly_within(wide * options.alpha + options.beta, 0, 1); });
}

Tensor hard_silu(const Tensor& x) {
  require_floating(x, "hard_silu");
  return in_computed_dtype(x, [](const Tensor& wide) { return at_least_lowest(wide) * hard_sigmoid(wide); });
}

Tensor hard_swish(const Tensor& x) { return hard_silu(require_floating(x, "hard_swish")); }

Tensor hard_tanh(const Tensor& x) { return clip_by_value(require_floating(x, "hard_tanh"), -1, 1); }

Tensor celu(const Tensor& x) {
  const HostFloats floats;
  return celu(x, AlphaOptions{});
}
Tensor celu(const Tensor& x, AlphaOptions options) {
  const HostFloats floats;
  check_options("celu", options);
  require_floating(x, "celu");
  require(options.alpha != 0, "celu: alpha must not be 0");
  return in_computed_dtype(
      x, [&](const Tensor& wide) { return exponential_branch(wide, options.alpha, 1 / options.alpha); });
}

Tensor elu(const Tensor& x, AlphaOptions options) {
  const HostFloats floats;
  check_options("elu", options);
  require_floating(x, "elu");
  return in_computed_dtype(x, [&](const Tensor& wide) { return exponential_branch(wide, options.alpha, 1); });
}

Tensor thresholded_relu(const Tensor& x) { return thresholded_relu(x, AlphaOptions{}); }
Tensor thresholded_relu(const Tensor& x, AlphaOptions options) {
  check_options("thresholded_relu", options);
  require_floating(x, "thresholded_relu");
  return where(x <= options.alpha, 0, x);
}

Tensor threshold(const Tensor& x, double threshold, double value) {
  require_floating(x, "threshold");
  return where(x <= threshold, value, x);
}

Tensor prelu(const Tensor& x, const NumberOrTensor& below) {
  const Tensor slope = below.beside(x, "prelu");
  require_floating(x, slope, "prelu");
  require(broadcast_shape(slope.shape(), x.shape(), "prelu") == x.shape(), "prelu: the slope is ", slope.spec(),
          ", which does not broadcast to x, ", x.spec());
  return in_computed_dtype(x, slope, [](const Tensor& wide, const Tensor& wide_slope) {
    const Tensor each = broadcast_to(wide_slope, wide.shape());
    const Tensor zero = zeros_like(wide), above = wide > zero;
    return where(above, wide, each * where(above, zero, wide));  // the slope has no part in an infinite x above 0
  });
}

Tensor hard_shrink(const Tensor& x) { return hard_shrink(x, ThresholdOptions{}); }
Tensor hard_shrink(const Tensor& x, ThresholdOptions options) {
  check_options("hard_shrink", options);
  require_floating(x, "hard_shrink");
  return where(abs(x) <= options.threshold, 0, x);
}

Tensor soft_shrink(const Tensor& x) { return soft_shrink(x, ThresholdOptions{}); }
Tensor soft_shrink(const Tensor& x, ThresholdOptions options) {
  check_options("soft_shrink", options);
  require_floating(x, "soft_shrink");
  return shrink(x, {.bias = options.threshold, .lambd = options.threshold});
}

Tensor shrink(const Tensor& x, ShrinkOptions options) {
  check_options("shrink", options);
  require_floating(x, "shrink");
  const Tensor neither = where(x <= options.lambd, 0, x);  // NaN stays
  const Tensor inner = where(x < -options.lambd, x + options.bias, neither);
  return where(x > options.lambd, x - options.bias, inner);
}

Tensor tanh_shrink(const Tensor& x) {
  require_floating(x, "tanh_shrink");
  return in_computed_dtype(x, [](const Tensor& wide) { return wide - tanh(wide); });
}

Tensor log_sigmoid(const Tensor& x) { return -softplus(-require_floating(x, "log_sigmoid")); }
Tensor silu(const Tensor& x, SiluOptions options) {
  check_options("silu", options);
  require_floating(x, "silu");
  if (options.beta == 1) return silu(x);
  return in_computed_dtype(x, [&](const Tensor& wide) {
    return (options.beta < 0 ? -at_least_lowest(-wide) : at_least_lowest(wide)) * sigmoid(wide * options.beta);
  });
}

Tensor swish(const Tensor& x) { return silu(require_floating(x, "swish")); }

Tensor gelu(const Tensor& x, GeluOptions options) {
  const HostFloats floats;
  if (!options.approximate) return gelu(x);
  require_floating(x, "gelu");
  const double root = std::sqrt(2 / std::numbers::pi);
  return in_computed_dtype(x, [&](const Tensor& wide) {
    const Tensor w = clip_by_value(wide, -1e10, 1e10);  // past which tanh is 1, and the cube stays finite
    return tanh_gate(wide, (w + w * w * w * 0.044715) * root);
  });
}

Tensor glu(const Tensor& x, int axis) {
  require_floating(x, "glu");
  const int at = checked_axis(x, axis, "glu");
  const std::int64_t n = x.shape()[at];
  require(n < 0 || n % 2 == 0, "glu: expected an even size along axis ", axis, ", got ", x.spec());
  return in_computed_dtype(x, [&](const Tensor& wide) {
    const std::vector<Tensor> halves = split(wide, 2, at);
    return halves[0] * sigmoid(halves[1]);
  });
}

Tensor squareplus(const Tensor& x) { return squareplus(x, SquareplusOptions{}); }
Tensor squareplus(const Tensor& x, SquareplusOptions options) {
  check_options("squareplus", options);
  require_floating(x, "squareplus");
  require(options.b > 0, "squareplus: b must be positive, got ", options.b);
  return in_computed_dtype(x, [&](const Tensor& wide) {
    const Tensor root = root_of_square(wide, options.b);
    // For negative x the sum would cancel.
    return where(wide >= zeros_like(wide), wide * 0.5 + root * 0.5, options.b / 2 / (root - wide));
  });
}

Tensor sparse_plus(const Tensor& x) {
  require_floating(x, "sparse_plus");
  return in_computed_dtype(x, [](const Tensor& wide) {
    const Tensor zero = zeros_like(wide);  // in place of what the square would make infinite
    const Tensor middle = square(where(logical_and(wide > -1, wide < 1), wide, zero) + 1) * 0.25;
    return where(wide <= -1, zero, where(wide < 1, middle, wide));
  });
}

Tensor sparse_sigmoid(const Tensor& x) {
  require_floating(x, "sparse_sigmoid");
  return in_computed_dtype(x, [](const Tensor& wide) { return strictly_within((wide + 1) * 0.5, 0, 1); });
}

Tensor sparsemax(const Tensor& x, int axis) {
  require_floating(x, "sparsemax");
  const int at = checked_axis(x, axis, "sparsemax");
  if (is_narrow(x.dtype())) return in_f32(x, [axis](const Tensor& wide) { return sparsemax(wide, axis); });
  // An element is above t if all that others have more than it adds up to less than 1.
  const Tensor own = expand_dims(x, at), other = expand_dims(x, at + 1);
  const Tensor excess = reduce_sum(relu(other - own), {.axis = {at}});
  const Tensor above = stop_gradient(excess) < 1, zero = zeros_like(x);
  const ReduceOptions along{.axis = {at}, .keepdims = true};
  const Tensor count = reduce_sum(where(above, ones_like(x), zero), along);
  const Tensor t = (reduce_sum(where(above, x, zero), along) - 1) / count;
  return where(above, x - t, zero);
}

Tensor relu(const Tensor& x, ReluOptions options) {
  check_options("relu", options);
  require_floating(x, "relu");
  const Tensor above = options.max_value ? minimum(x, *options.max_value) : x;
  return where(x > options.threshold, above, (x - options.threshold) * options.negative_slope);
}

Tensor exponential(const Tensor& x) { return exp(require_floating(x, "exponential")); }

}  // namespace gradus
