/// Further activations of floats, with Keras's defaults. Where a slope jumps, the gradient is the one of Keras on
/// TensorFlow; each function says it.
#pragma once
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

struct AlphaOptions {
  double alpha = 1;
  static constexpr auto ranges() { return std::array{Allowed::finite("alpha")}; }
};
struct ThresholdOptions {
  double threshold = 0.5;
  static constexpr auto ranges() { return std::array{Allowed::finite("threshold")}; }
};

/// min(max(x, 0), 6). The gradient at 0 and at 6 is 0, at NaN 0.
Tensor relu6(const Tensor& x);
struct HardSigmoidOptions {
  double alpha = 1.0 / 6, beta = 0.5;
  static constexpr auto ranges() { return std::array{Allowed::finite("alpha beta")}; }
};
/// alpha x + beta within 0 and 1 (ONNX has alpha 0.2). The gradient at both bounds is 0.
Tensor hard_sigmoid(const Tensor& x);
Tensor hard_sigmoid(const Tensor& x, HardSigmoidOptions options);
/// x hard_sigmoid(x)
Tensor hard_silu(const Tensor& x);
Tensor hard_swish(const Tensor& x);
/// x within -1 and 1. The gradient at both bounds is 1.
Tensor hard_tanh(const Tensor& x);
/// x tanh(softplus(x))
Tensor mish(const Tensor& x);
/// x, for x <= 0 alpha (exp(x / alpha) - 1). InvalidArgument if alpha is 0.
Tensor celu(const Tensor& x);
Tensor celu(const Tensor& x, AlphaOptions options);
/// x, for x <= 0 alpha (exp(x) - 1). The gradient at 0 is alpha.
Tensor elu(const Tensor& x, AlphaOptions options);
/// x / (1 + |x|)
Tensor softsign(const Tensor& x);
/// x where it is above alpha, else 0. The gradient at alpha is 0.
Tensor thresholded_relu(const Tensor& x);
Tensor thresholded_relu(const Tensor& x, AlphaOptions options);
/// x where it is above `threshold`, else `value`.
Tensor threshold(const Tensor& x, double threshold, double value);
/// x, for x <= 0 slope * x; the slope broadcasts to x. The gradient at 0 is the slope.
Tensor prelu(const Tensor& x, const NumberOrTensor& slope);
/// x where |x| is above the threshold, else 0. The gradient at the threshold is 0.
Tensor hard_shrink(const Tensor& x);
Tensor hard_shrink(const Tensor& x, ThresholdOptions options);
/// Nearer to 0 by the threshold, at most until 0. The gradient at the threshold is 0.
Tensor soft_shrink(const Tensor& x);
Tensor soft_shrink(const Tensor& x, ThresholdOptions options);
struct ShrinkOptions {
  double bias = 0, lambd = 0.5;
  static constexpr auto ranges() { return std::array{Allowed::finite("bias lambd")}; }
};
/// x + bias below -lambd, x - bias above lambd, else 0 (ONNX).
Tensor shrink(const Tensor& x, ShrinkOptions options = {});
/// x - tanh(x)
Tensor tanh_shrink(const Tensor& x);
/// log(sigmoid(x)), exact also where sigmoid rounds to 0 or 1.
Tensor log_sigmoid(const Tensor& x);
struct SiluOptions {
  double beta = 1;
  static constexpr auto ranges() { return std::array{Allowed::finite("beta")}; }
};
/// x sigmoid(beta x)
Tensor silu(const Tensor& x, SiluOptions options);
Tensor swish(const Tensor& x);
struct GeluOptions {
  bool approximate = false;
};
/// approximate: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Tensor gelu(const Tensor& x, GeluOptions options);
/// a sigmoid(b) of the two halves of `axis`. InvalidArgument if its size is odd.
Tensor glu(const Tensor& x, int axis = -1);
struct SquareplusOptions {
  double b = 4;
  static constexpr auto ranges() { return std::array{Allowed::not_negative("b")}; }
};
/// (x + sqrt(x^2 + b)) / 2, exact also where that is small. InvalidArgument unless b > 0.
Tensor squareplus(const Tensor& x);
Tensor squareplus(const Tensor& x, SquareplusOptions options);
/// 0 up to -1, (x + 1)^2 / 4 up to 1, then x. The gradient has no jump.
Tensor sparse_plus(const Tensor& x);
/// (x + 1) / 2 within 0 and 1. The gradient at both bounds is 0.
Tensor sparse_sigmoid(const Tensor& x);
/// The nearest point of the simplex: max(x - t, 0) along `axis` with the t that makes the sum 1 (Martins and Astudillo
/// 2016). Takes memory for all pairs of an axis.
Tensor sparsemax(const Tensor& x, int axis = -1);
struct ReluOptions {
  double negative_slope = 0;
  std::optional<double> max_value = {};
  double threshold = 0;
  static constexpr auto ranges() { return std::array{Allowed::finite("negative_slope max_value threshold")}; }
};
/// x above the threshold, at most max_value; elsewhere negative_slope * (x - threshold). The gradient at the threshold
/// is the slope, at the maximum 1.
Tensor relu(const Tensor& x, ReluOptions options);
/// exp(x)
Tensor exponential(const Tensor& x);

}  // namespace gradus
