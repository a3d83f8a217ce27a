/// Exponentials, logarithms, roots, circular functions and rounding.
#include <numbers>
#include "gradus/ops/elementwise_parts.h"

namespace gradus {
namespace {

struct Exp {
  static constexpr auto name = "exp";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return exp(x); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return {dy * y}; }
};

struct Expm1 {
  static constexpr auto name = "expm1";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return expm1(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * exp(in[0])}; }
};

struct Log {
  static constexpr auto name = "log";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return log(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {cotangent_over(dy, in[0])}; }
};

struct Log1p {
  static constexpr auto name = "log1p";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return log1p(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {cotangent_over(dy, in[0] + ones_like(dy))}; }
};

struct Sqrt {
  static constexpr auto name = "sqrt";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return sqrt(x); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return {cotangent_over(dy, y + y)}; }
};

struct Rsqrt {
  static constexpr auto name = "rsqrt";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return 1.0 / sqrt(x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    // d(x^-1/2) = -x^-1/2 / 2x
    return {-cotangent_times(cotangent_over(dy, in[0] + in[0]), y)};
  }
};

struct Sin {
  static constexpr auto name = "sin";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return sin(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * cos(in[0])}; }
};

struct Cos {
  static constexpr auto name = "cos";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return cos(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {-(dy * sin(in[0]))}; }
};

struct Tan {
  static constexpr auto name = "tan";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return tan(x); }
  Tensors vjp(In, const Tensor& y, const Tensor& dy) const { return {dy * (ones_like(dy) + y * y)}; }
};

struct Erf {
  static constexpr auto name = "erf";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return erf(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {dy * (exp(-(in[0] * in[0])) * fill_like(dy, 2 * std::numbers::inv_sqrtpi))};
  }
};

struct Floor {
  static constexpr auto name = "floor";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return floor(x); }
  Tensors vjp(In, const Tensor&, const Tensor& dy) const { return {zeros_like(dy)}; }
};

struct Ceil {
  static constexpr auto name = "ceil";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return ceil(x); }
  Tensors vjp(In, const Tensor&, const Tensor& dy) const { return {zeros_like(dy)}; }
};

struct Round {
  static constexpr auto name = "round";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return round_even(x); }
  Tensors vjp(In, const Tensor&, const Tensor& dy) const { return {zeros_like(dy)}; }
};

}  // namespace

Tensor exp(const Tensor& x) { return apply_wide(Exp{}, x); }
Tensor expm1(const Tensor& x) { return apply_wide(Expm1{}, x); }
Tensor log(const Tensor& x) { return apply(Log{}, x); }
Tensor log1p(const Tensor& x) { return apply_wide(Log1p{}, x); }
Tensor sqrt(const Tensor& x) { return apply_wide(Sqrt{}, x); }
Tensor rsqrt(const Tensor& x) { return apply_wide(Rsqrt{}, x); }
Tensor sin(const Tensor& x) { return apply_wide(Sin{}, x); }
Tensor cos(const Tensor& x) { return apply_wide(Cos{}, x); }
Tensor tan(const Tensor& x) { return apply_wide(Tan{}, x); }
Tensor erf(const Tensor& x) { return apply_wide(Erf{}, x); }
Tensor floor(const Tensor& x) { return apply(Floor{}, x); }
Tensor ceil(const Tensor& x) { return apply(Ceil{}, x); }
Tensor round(const Tensor& x) { return apply(Round{}, x); }

}  // namespace gradus
