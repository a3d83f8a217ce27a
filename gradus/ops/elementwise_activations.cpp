/// Activations. tanh, sigmoid, relu and softplus are primitives, since gradients of their parts would be wrong at kinks
/// or overflow. The others are composed of them.
#include <limits>
#include <numbers>
#include "gradus/ops/elementwise_parts.h"

namespace gradus {
namespace {

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

struct Gelu {
  static constexpr auto name = "gelu";
  Tensor expand(In in) const {
    const Tensor& x = in[0];
    const Tensor phi = erf(x * fill_like(x, std::numbers::sqrt2 / 2)) + ones_like(x);
    return x * fill_like(x, 0.5) * phi;
  }
};

struct Silu {
  static constexpr auto name = "silu";
  Tensor expand(In in) const { return in[0] * sigmoid(in[0]); }
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

/// Of x and a scalar alpha.
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

Tensor tanh_grad(const Tensor& y, const Tensor& dy) { return apply(TanhGrad{}, y, dy); }
Tensor sigmoid_grad(const Tensor& y, const Tensor& dy) { return apply(SigmoidGrad{}, y, dy); }
Tensor tanh(const Tensor& x) { return apply_wide(Tanh{}, x); }
Tensor sigmoid(const Tensor& x) { return apply_wide(Sigmoid{}, x); }
Tensor relu(const Tensor& x) { return apply(Relu{}, x); }
Tensor softplus(const Tensor& x) { return apply_wide(Softplus{}, x); }
Tensor sigmoid_crossentropy(const Tensor& x, const Tensor& z) { return broadcasting_wide(SigmoidCrossentropy{}, x, z); }
Tensor gelu(const Tensor& x) { return apply_wide(Gelu{}, floats(x, Gelu::name)); }
Tensor silu(const Tensor& x) { return apply_wide(Silu{}, floats(x, Silu::name)); }
Tensor elu(const Tensor& x) { return apply_wide(Elu{}, floats(x, Elu::name)); }
Tensor selu(const Tensor& x) { return apply_wide(Selu{}, floats(x, Selu::name)); }
Tensor leaky_relu(const Tensor& x, double alpha) {
  return apply(LeakyRelu{}, floats(x, LeakyRelu::name), scalar_like(x, alpha, LeakyRelu::name));
}
Tensor linear(const Tensor& x) { return x; }

}  // namespace gradus
