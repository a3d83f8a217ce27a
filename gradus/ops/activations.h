/// Further activations of floats, with Keras's defaults. Where the slope jumps, the gradient is the one of Keras on
/// TensorFlow. Each function says which one that is.
#pragma once
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// Options of celu, elu and thresholded_relu.
struct AlphaOptions {
  double alpha = 1;  // scale of the negative part, or the threshold
  static constexpr auto ranges() { return std::array{Allowed::finite("alpha")}; }
};
/// Options of hard_shrink and soft_shrink.
struct ThresholdOptions {
  double threshold = 0.5;  // elements with |x| at most this become 0
  static constexpr auto ranges() { return std::array{Allowed::finite("threshold")}; }
};

/// min(max(x, 0), 6). The gradient is 0 at 0, at 6 and at NaN.
Tensor relu6(const Tensor& x);
/// Options of hard_sigmoid.
struct HardSigmoidOptions {
  double alpha = 1.0 / 6, beta = 0.5;  // slope, and value at 0
  static constexpr auto ranges() { return std::array{Allowed::finite("alpha beta")}; }
};
/// clip(alpha x + beta, 0, 1). ONNX has alpha 0.2. The gradient at both bounds is 0.
Tensor hard_sigmoid(const Tensor& x);
Tensor hard_sigmoid(const Tensor& x, HardSigmoidOptions options);
/// x hard_sigmoid(x).
Tensor hard_silu(const Tensor& x);
/// Another name of hard_silu.
Tensor hard_swish(const Tensor& x);
/// clip(x, -1, 1). The gradient at both bounds is 1.
Tensor hard_tanh(const Tensor& x);
/// x tanh(softplus(x)).
Tensor mish(const Tensor& x);
/// x for x > 0, else alpha (exp(x / alpha) - 1). InvalidArgument if alpha is 0.
Tensor celu(const Tensor& x);
Tensor celu(const Tensor& x, AlphaOptions options);
/// x for x > 0, else alpha (exp(x) - 1). The gradient at 0 is alpha.
Tensor elu(const Tensor& x, AlphaOptions options);
/// x / (1 + |x|).
Tensor softsign(const Tensor& x);
/// x where x > alpha, else 0. The gradient at alpha is 0.
Tensor thresholded_relu(const Tensor& x);
Tensor thresholded_relu(const Tensor& x, AlphaOptions options);
/// x where x > `threshold`, else `value`.
Tensor threshold(const Tensor& x, double threshold, double value);
/// x for x > 0, else slope * x. The slope broadcasts to x. The gradient at 0 is the slope.
Tensor prelu(const Tensor& x, const NumberOrTensor& slope);
/// x where |x| > threshold, else 0. The gradient at the threshold is 0.
Tensor hard_shrink(const Tensor& x);
Tensor hard_shrink(const Tensor& x, ThresholdOptions options);
/// x moved towards 0 by the threshold, but not past 0. The gradient at the threshold is 0.
Tensor soft_shrink(const Tensor& x);
Tensor soft_shrink(const Tensor& x, ThresholdOptions options);
/// Options of shrink, under ONNX's names.
struct ShrinkOptions {
  double bias = 0, lambd = 0.5;  // distance by which elements move, and the threshold
  static constexpr auto ranges() { return std::array{Allowed::finite("bias lambd")}; }
};
/// x + bias where x < -lambd, x - bias where x > lambd, else 0 (ONNX).
Tensor shrink(const Tensor& x, ShrinkOptions options = {});
/// x - tanh(x).
Tensor tanh_shrink(const Tensor& x);
/// log(sigmoid(x)). Exact also where sigmoid rounds to 0 or 1.
Tensor log_sigmoid(const Tensor& x);
/// Options of silu.
struct SiluOptions {
  double beta = 1;  // factor on x inside the sigmoid
  static constexpr auto ranges() { return std::array{Allowed::finite("beta")}; }
};
/// x sigmoid(beta x).
Tensor silu(const Tensor& x, SiluOptions options);
/// Another name of silu, with beta 1.
Tensor swish(const Tensor& x);
/// Options of gelu.
struct GeluOptions {
  bool approximate = false;  // take the formula with tanh instead of the one with erf
};
/// Gaussian error linear unit. With `approximate`: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Tensor gelu(const Tensor& x, GeluOptions options);
/// Gated linear unit: a sigmoid(b), with a and b the two halves of x along `axis`. InvalidArgument if the size of
/// `axis` is odd.
Tensor glu(const Tensor& x, int axis = -1);
inline Tensor glu(const Tensor& x, NamedAxis named) { return glu(x, named.axis); }
/// Options of squareplus.
struct SquareplusOptions {
  double b = 4;  // width of the bend at 0
  static constexpr auto ranges() { return std::array{Allowed::not_negative("b")}; }
};
/// (x + sqrt(x^2 + b)) / 2. Exact also where the result is small. InvalidArgument unless b > 0.
Tensor squareplus(const Tensor& x);
Tensor squareplus(const Tensor& x, SquareplusOptions options);
/// 0 for x <= -1, (x + 1)^2 / 4 up to 1, then x. The gradient has no jump.
Tensor sparse_plus(const Tensor& x);
/// clip((x + 1) / 2, 0, 1). The gradient at both bounds is 0.
Tensor sparse_sigmoid(const Tensor& x);
/// Projection onto the simplex: max(x - t, 0) along `axis`, with the t that makes the sum 1 (Martins and Astudillo
/// 2016). Memory grows with the square of the size of `axis`.
Tensor sparsemax(const Tensor& x, int axis = -1);
inline Tensor sparsemax(const Tensor& x, NamedAxis named) { return sparsemax(x, named.axis); }
/// Options of relu.
struct ReluOptions {
  double negative_slope = 0;             // slope below the threshold
  std::optional<double> max_value = {};  // upper bound of the result; none by default
  double threshold = 0;                  // elements above it pass unchanged
  static constexpr auto ranges() { return std::array{Allowed::finite("negative_slope max_value threshold")}; }
};
/// min(x, max_value) where x > threshold, else negative_slope * (x - threshold). The gradient is negative_slope at the
/// threshold, and 1 at the maximum.
Tensor relu(const Tensor& x, ReluOptions options);
/// exp(x).
Tensor exponential(const Tensor& x);

}  // namespace gradus
