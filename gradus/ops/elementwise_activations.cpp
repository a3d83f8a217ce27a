/// Activations. tanh, sigmoid, relu and softplus are primitives, since gradients of their parts would be wrong at kinks
/// or overflow. The others are composed of them.
#include <cmath>
#include <limits>
#include <numbers>
#include "gradus/scalar/formulas_special.h"
#include "gradus/scalar/rare_parts.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/slopes.h"

namespace gradus {
namespace {

double largest_of(DType t) {
  if (t == f64) return std::numeric_limits<double>::max();
  return t == f16 ? 65504 : t == bf16 ? 0x1.fep127 : std::numeric_limits<float>::max();
}

struct TanhGrad {
  static constexpr auto name = "tanh_grad";
  static constexpr auto takes = Takes::floats;
  auto emit(auto y, auto dy) const { return dy * (1.0 - y * y); }
  Tensors vjp(In in, const Tensor&, const Tensor& dz) const {
    const Tensor &y = in[0], &dy = in[1];
    return {dz * dy * y * fill_like(y, -2), tanh_grad(y, dz)};
  }
};

struct Tanh {
  static constexpr auto name = "tanh";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return tanh(x); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return {tanh_grad(y, dy)}; }
};

struct SigmoidGrad {
  static constexpr auto name = "sigmoid_grad";
  static constexpr auto takes = Takes::floats;
  auto emit(auto y, auto dy) const { return dy * (y * (1.0 - y)); }
  Tensors vjp(In in, const Tensor&, const Tensor& dz) const {
    const Tensor &y = in[0], &dy = in[1];
    return {dz * dy * (ones_like(y) - y * fill_like(y, 2)), sigmoid_grad(y, dz)};
  }
};

struct Sigmoid {
  static constexpr auto name = "sigmoid";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return sigmoid(x); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return {sigmoid_grad(y, dy)}; }
};

struct Relu {
  static constexpr auto name = "relu";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return max(0.0, x); }  // in this order NaN stays
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const {
    const Tensor zero = zeros_like(dy);
    return {where(zero < y, dy, zero)};
  }
};

struct Softplus {
  static constexpr auto name = "softplus";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return max(0.0, x) + log1p(exp(-abs(x))); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * sigmoid(in[0])}; }
};

/// The product would be infinite or NaN where x is infinite: there only the part that disagrees counts.
struct SigmoidCrossentropy {
  static constexpr auto name = "sigmoid_crossentropy";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x, auto z) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto size = abs(x), disagrees = select(x > 0.0, 1.0 - z, z);
    const auto limit = select(disagrees == 0.0, 0.0, size * disagrees);
    return select(size == infinity, limit, max(0.0, x) + log1p(exp(-size)) - x * z);
  }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {dy * sigmoid(in[0]) - dy * in[1], -(dy * in[0])};
  }
};

/// 2 / sqrt(pi) exp(-x^2 / 2), the derivative of erf at x / sqrt(2).
struct ErfSlope {
  static constexpr auto name = "erf_slope";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return erf_slope(x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const { return {-(dy * (finite_part(in[0]) * y))}; }
};

struct TwiceNormalCdf {
  static constexpr auto name = "twice_normal_cdf";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return twice_normal_cdf(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {dy * erf_slope(in[0]) * fill_like(dy, std::numbers::sqrt2 / 2)};
  }
};

struct Gelu {
  static constexpr auto name = "gelu";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return gelu(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor& x = in[0];
    const Tensor half = fill_like(x, 0.5), root = fill_like(x, std::numbers::sqrt2 / 2);
    const Tensor slope = dy * (finite_part(x) * half) * erf_slope(x) * root;
    return {dy * twice_normal_cdf(x) * half + slope};
  }
};

struct Silu {
  static constexpr auto name = "silu";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return silu(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor share = sigmoid(in[0]);
    return {dy * share + sigmoid_grad(share, dy * finite_part(in[0]))};
  }
};

struct Mish {
  static constexpr auto name = "mish";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return mish(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor share = tanh(softplus(in[0]));
    return {dy * share + tanh_grad(share, dy * finite_part(in[0])) * sigmoid(in[0])};
  }
};

/// 1 / (1 + |x|)^2, the derivative of softsign.
struct SoftsignSlope {
  static constexpr auto name = "softsign_slope";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const {
    const auto root = 1.0 / (abs(x) + 1.0);
    return root * root;
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    const Tensor one = ones_like(dy);
    return {dy * (y / (abs(in[0]) + one)) * (sign(in[0]) * fill_like(dy, -2))};
  }
};

struct Softsign {
  static constexpr auto name = "softsign";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const {
    const double most = largest_of(type_of(x));
    const auto bounded = max(-most, min(most, x));  // infinities have their limits
    return bounded / (abs(bounded) + 1.0);
  }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * softsign_slope(in[0])}; }
};

/// 1 + tanh(x) without cancellation, and its derivative.
struct OnePlusTanhSlope {
  static constexpr auto name = "one_plus_tanh_slope";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return one_plus_tanh_slope(x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const { return {dy * (tanh(in[0]) * y) * fill_like(dy, -2)}; }
};

struct OnePlusTanh {
  static constexpr auto name = "one_plus_tanh";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return one_plus_tanh(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {cotangent_times(one_plus_tanh_slope(in[0]), dy)};
  }
};

struct TanhGate {
  static constexpr auto name = "tanh_gate";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x, auto u) const { return tanh_gate(x, u); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor half = fill_like(dy, 0.5);
    return {dy * one_plus_tanh(in[1]) * half,
            cotangent_times(one_plus_tanh_slope(in[1]), dy * (finite_part(in[0]) * half))};
  }
};

/// sqrt(x^2 + b) for b > 0, without overflow.
struct RootOfSquare {
  /// The size of x from which on x^2 nearly overflows, and b is negligible unless it is huge.
  static double far_of(DType t) { return t == f64 ? 0x1p510 : 0x1p62; }
  static constexpr auto name = "root_of_square";
  static constexpr auto takes = Takes::floats;
  double b = 1;
  auto emit(auto x) const {
    const auto size = abs(x);
    const double far = far_of(type_of(x));
    const auto ratio = std::sqrt(b) / size;
    return select_rarely(size >= far, size * sqrt(ratio * ratio + 1.0), sqrt(x * x + b));
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    // In this range x / y is 1 or -1 to the last place, and dy / y may be subnormal.
    const Tensor far = fill_like(dy, std::sqrt(b) * (dy.dtype() == f64 ? 0x1p28 : 0x1p13)) <= abs(in[0]);
    return {where(far, dy * sign(in[0]), cotangent_over(dy, finite_part(y)) * finite_part(in[0]))};
  }
};

/// exp(x) - 1 of the negative part, so that the branch not taken cannot overflow.
Tensor negative_part(const Tensor& x) { return expm1(minimum(x, zeros_like(x))); }

struct Elu {
  static constexpr auto name = "elu";
  Tensor expand(In in) const {
    const Tensor& x = in[0];
    return where(x <= zeros_like(x), negative_part(x), x);  // NaN counts as positive, as in TensorFlow
  }
};

struct Selu {
  static constexpr auto name = "selu";
  Tensor expand(In in) const {
    // Klambauer et al. 2017, Self-Normalizing Neural Networks, equation 14.
    constexpr double scale = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
    const Tensor& x = in[0];
    return where(x < zeros_like(x), negative_part(x) * fill_like(x, scale * alpha), x * fill_like(x, scale));
  }
};

/// Takes x and a scalar alpha.
struct LeakyRelu {
  static constexpr auto name = "leaky_relu";
  Tensor expand(In in) const { return where(in[0] > zeros_like(in[0]), in[0], in[0] * in[1]); }
};

/// Composites check here: their parts would name themselves.
const Tensor& floats(const Tensor& x, std::string_view op) {
  require(is_floating(x.dtype()), op, ": expected a floating type, got ", x.spec(), "; cast it first");
  return x;
}

}  // namespace

Tensor finite_part(const Tensor& x) { return clip_by_value(x, -largest_of(x.dtype()), largest_of(x.dtype())); }
Tensor at_least_lowest(const Tensor& x) { return maximum(x, -largest_of(x.dtype())); }
Tensor twice_normal_cdf(const Tensor& x) { return apply(TwiceNormalCdf{}, x); }
Tensor erf_slope(const Tensor& x) { return apply(ErfSlope{}, x); }
Tensor tanh_gate(const Tensor& x, const Tensor& u) { return apply(TanhGate{}, x, u); }
Tensor one_plus_tanh(const Tensor& x) { return apply(OnePlusTanh{}, x); }
Tensor one_plus_tanh_slope(const Tensor& x) { return apply(OnePlusTanhSlope{}, x); }
Tensor softsign_slope(const Tensor& x) { return apply(SoftsignSlope{}, x); }
Tensor root_of_square(const Tensor& x, double b) { return apply(RootOfSquare{b}, x); }
Tensor mish(const Tensor& x) { return apply_wide(Mish{}, x); }
Tensor softsign(const Tensor& x) { return apply_wide(Softsign{}, x); }

Tensor tanh_grad(const Tensor& y, const Tensor& dy) { return apply(TanhGrad{}, y, dy); }
Tensor sigmoid_grad(const Tensor& y, const Tensor& dy) { return apply(SigmoidGrad{}, y, dy); }
Tensor tanh(const Tensor& x) { return apply_wide(Tanh{}, x); }
Tensor sigmoid(const Tensor& x) { return apply_wide(Sigmoid{}, x); }
Tensor relu(const Tensor& x) { return apply(Relu{}, x); }
Tensor softplus(const Tensor& x) { return apply_wide(Softplus{}, x); }
Tensor sigmoid_crossentropy(const Tensor& x, const Tensor& z) { return broadcasting_wide(SigmoidCrossentropy{}, x, z); }
Tensor gelu(const Tensor& x) { return apply_wide(Gelu{}, x); }
Tensor silu(const Tensor& x) { return apply_wide(Silu{}, x); }
Tensor elu(const Tensor& x) { return apply_wide(Elu{}, floats(x, Elu::name)); }
Tensor selu(const Tensor& x) { return apply_wide(Selu{}, floats(x, Selu::name)); }
Tensor leaky_relu(const Tensor& x, double alpha) {
  return apply(LeakyRelu{}, floats(x, LeakyRelu::name), scalar_like(x, alpha, LeakyRelu::name));
}
Tensor linear(const Tensor& x) { return x; }

}  // namespace gradus
