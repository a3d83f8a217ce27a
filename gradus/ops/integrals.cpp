/// Special functions that are defined as integrals, with slopes that have formulas of their own.
#include <numbers>
#include "gradus/scalar/formulas_special.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/slopes.h"
#include "gradus/ops/special.h"

namespace gradus {
namespace {

/// cos(pi x^2 / 2), or its sine.
struct FresnelSlope {
  static constexpr auto name = "fresnel_slope";
  static constexpr auto takes = Takes::floats;
  bool sine = false;
  auto emit(auto x) const { return fresnel_slope(sine, x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor slope = in[0] * fill_like(dy, sine ? std::numbers::pi : -std::numbers::pi);
    return {cotangent_times(dy, slope * fresnel_slope(in[0], !sine))};
  }
};

struct FresnelCos {
  static constexpr auto name = "fresnel_cos";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return fresnel_cos(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * fresnel_slope(in[0], false)}; }
};

struct FresnelSin {
  static constexpr auto name = "fresnel_sin";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return fresnel_sin(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * fresnel_slope(in[0], true)}; }
};

struct Expint {
  static constexpr auto name = "expint";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return expint(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {cotangent_times(dy, exp(in[0]) / in[0])}; }
};

constexpr int highest_spence = 12;

/// Its derivative log(x) / (1 - x) would be 0 / 0 at 1, so each of these is a function of its own.
struct Spence {
  static constexpr auto name = "spence";
  static constexpr auto takes = Takes::floats;
  int order = 0;
  auto emit(auto x) const { return spence(order, x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    require(order < highest_spence, "spence: derivatives up to order ", highest_spence, " are known");
    return {cotangent_times(dy, apply(Spence{order + 1}, in[0]))};
  }
};

/// D' = 1 - 2 x D, whose derivative is -2 (D + x D').
struct DawsnSlope {
  static constexpr auto name = "dawsn_slope";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return dawsn_slope(x); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    return {dy * ((dawsn(in[0]) + finite_part(in[0]) * y) * fill_like(dy, -2))};
  }
};

struct Dawsn {
  static constexpr auto name = "dawsn";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return dawsn(x); }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {dy * dawsn_slope(in[0])}; }
};

}  // namespace

Tensor fresnel_cos(const Tensor& x) { return apply_wide(FresnelCos{}, x); }
Tensor fresnel_sin(const Tensor& x) { return apply_wide(FresnelSin{}, x); }
Tensor fresnel_slope(const Tensor& x, bool sine) { return apply(FresnelSlope{sine}, x); }
Tensor dawsn_slope(const Tensor& x) { return apply(DawsnSlope{}, x); }
Tensor expint(const Tensor& x) { return apply_wide(Expint{}, x); }
Tensor spence(const Tensor& x) { return apply_wide(Spence{}, x); }
Tensor dawsn(const Tensor& x) { return apply_wide(Dawsn{}, x); }

}  // namespace gradus
