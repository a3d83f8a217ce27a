/// Rows of elementwise ops.
#include <cstddef>
#include "bench/ops/row.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/bits.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/incomplete.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/special.h"

namespace gradus::bench {
namespace {

using OfOne = Tensor (*)(const Tensor&);
using OfTwo = Tensor (*)(const Tensor&, const Tensor&);

/// An op of one operand between two bounds.
Row of_one(const char* name, OfOne formula, const char* torch, const char* jax, const char* bounds = "-1 1",
           int gradients = by_all) {
  return {.name = name,
          .inputs = {std::string("f32[n] ") + bounds},
          .extents = elements,
          .ours = [formula](const Case& x) { return formula(x[0]); },
          .torch = torch,
          .jax = jax,
          .gradients = gradients};
}

/// An op of two operands between the same bounds.
Row of_two(const char* name, OfTwo formula, const char* torch, const char* jax, const char* bounds = "-1 1",
           int gradients = by_all) {
  return {.name = name,
          .inputs = {std::string("f32[n] ") + bounds, std::string("f32[n] ") + bounds},
          .extents = elements,
          .ours = [formula](const Case& x) { return formula(x[0], x[1]); },
          .torch = torch,
          .jax = jax,
          .gradients = gradients};
}

/// An op of integers, or of booleans.
Row of_integers(const char* name, OfTwo formula, const char* torch, const char* jax,
                const char* input = "i32[n] 1 1000") {
  return {.name = name,
          .inputs = {input, input},
          .extents = elements,
          .ours = [formula](const Case& x) { return formula(x[0], x[1]); },
          .torch = torch,
          .jax = jax,
          .gradients = no_gradient};
}

/// The row with fewer elements: each takes a series.
Row of_few(Row row) {
  row.extents = {64, 2048, 32768};
  return row;
}

constexpr const char *positive = "0.1 3", *within_one = "-0.9 0.9", *share = "0.05 0.95", *wide = "-4 4";

void add_arithmetic(Rows& rows) {
  using T = const Tensor&;
  const Rows added = {
      of_two(
          "add", [](T a, T b) { return a + b; }, "a + b", "a + b"),
      of_two(
          "subtract", [](T a, T b) { return a - b; }, "a - b", "a - b"),
      of_two(
          "multiply", [](T a, T b) { return a * b; }, "a * b", "a * b"),
      of_two(
          "divide", [](T a, T b) { return a / b; }, "a / b", "a / b", positive),
      of_two("mod", mod, "torch.remainder(a, b)", "jnp.mod(a, b)", positive),
      of_two(
          "truncatemod", [](T a, T b) { return truncatemod(a, b); }, "torch.fmod(a, b)", "jnp.fmod(a, b)", positive),
      of_two("floor_divide", floor_divide, "torch.floor_divide(a, b)", "jnp.floor_divide(a, b)", positive, no_gradient),
      of_two("pow", pow, "torch.pow(a, b)", "jnp.power(a, b)", positive),
      of_one(
          "pow cube", [](T a) { return pow(a, 3); }, "a ** 3", "a ** 3"),
      of_two("maximum", maximum, "torch.maximum(a, b)", "jnp.maximum(a, b)"),
      of_two("minimum", minimum, "torch.minimum(a, b)", "jnp.minimum(a, b)"),
      of_two(
          "fmax", [](T a, T b) { return fmax(a, b); }, "torch.fmax(a, b)", "jnp.fmax(a, b)"),
      of_two(
          "fmin", [](T a, T b) { return fmin(a, b); }, "torch.fmin(a, b)", "jnp.fmin(a, b)"),
      of_two(
          "hypot", [](T a, T b) { return hypot(a, b); }, "torch.hypot(a, b)", "jnp.hypot(a, b)", positive),
      of_two(
          "atan2", [](T a, T b) { return atan2(a, b); }, "torch.atan2(a, b)", "jnp.arctan2(a, b)"),
      of_two(
          "logaddexp", [](T a, T b) { return logaddexp(a, b); }, "torch.logaddexp(a, b)", "jnp.logaddexp(a, b)"),
      of_two(
          "logaddexp2", [](T a, T b) { return logaddexp2(a, b); }, "torch.logaddexp2(a, b)", "jnp.logaddexp2(a, b)"),
      of_two(
          "copysign", [](T a, T b) { return copysign(a, b); }, "torch.copysign(a, b)", "jnp.copysign(a, b)"),
      of_two(
          "heaviside", [](T a, T b) { return heaviside(a, b); }, "torch.heaviside(a, b)", "jnp.heaviside(a, b)", "-1 1",
          no_gradient),
      of_two(
          "xlogy", [](T a, T b) { return xlogy(a, b); }, "torch.special.xlogy(a, b)", "jax.scipy.special.xlogy(a, b)",
          positive),
      of_two(
          "xlog1py", [](T a, T b) { return xlog1py(a, b); }, "torch.special.xlog1py(a, b)",
          "jax.scipy.special.xlog1py(a, b)", positive),
      of_two(
          "squared_difference", [](T a, T b) { return squared_difference(a, b); }, "(a - b) ** 2", "(a - b) ** 2"),
      of_two(
          "less", [](T a, T b) { return a < b; }, "a < b", "a < b", "-1 1", no_gradient),
      of_two("equal", equal, "a == b", "a == b", "-1 1", no_gradient),
      of_two(
          "isclose", [](T a, T b) { return isclose(a, b); }, "torch.isclose(a, b)", "jnp.isclose(a, b)", "-1 1",
          no_gradient),
      of_few(of_two(
          "igamma", [](T a, T b) { return igamma(a, b); }, "torch.special.gammainc(a, b)",
          "jax.scipy.special.gammainc(a, b)", positive, no_gradient)),
      of_few(of_two(
          "igammac", [](T a, T b) { return igammac(a, b); }, "torch.special.gammaincc(a, b)",
          "jax.scipy.special.gammaincc(a, b)", positive, no_gradient)),
      of_few(of_two(
          "zeta", [](T a, T b) { return zeta(a, b); }, "torch.special.zeta(a, b)", "jax.scipy.special.zeta(a, b)",
          "1.5 4", no_gradient)),
      of_integers(
          "gcd", [](T a, T b) { return gcd(a, b); }, "torch.gcd(a, b)", "jnp.gcd(a, b)"),
      of_integers(
          "lcm", [](T a, T b) { return lcm(a, b); }, "torch.lcm(a, b)", "jnp.lcm(a, b)"),
      of_integers(
          "bitwise_and", [](T a, T b) { return bitwise_and(a, b); }, "a & b", "a & b"),
      of_integers(
          "bitwise_or", [](T a, T b) { return bitwise_or(a, b); }, "a | b", "a | b"),
      of_integers(
          "bitwise_xor", [](T a, T b) { return bitwise_xor(a, b); }, "a ^ b", "a ^ b"),
      of_integers(
          "left_shift", [](T a, T b) { return left_shift(a, b); }, "a << b", "a << b", "i32[n] 1 8"),
      of_integers(
          "right_shift", [](T a, T b) { return right_shift(a, b); }, "a >> b", "a >> b", "i32[n] 1 8"),
      of_integers(
          "logical_and", [](T a, T b) { return logical_and(a, b); }, "torch.logical_and(a, b)", "jnp.logical_and(a, b)",
          "bool[n] 0 2"),
      of_integers(
          "logical_or", [](T a, T b) { return logical_or(a, b); }, "torch.logical_or(a, b)", "jnp.logical_or(a, b)",
          "bool[n] 0 2"),
      of_integers(
          "logical_xor", [](T a, T b) { return logical_xor(a, b); }, "torch.logical_xor(a, b)", "jnp.logical_xor(a, b)",
          "bool[n] 0 2"),
      {.name = "where",
       .inputs = {"f32[n]", "f32[n]", "bool[n] 0 2"},
       .extents = elements,
       .ours = [](const Case& x) { return where(x[2], x[0], x[1]); },
       .torch = "torch.where(c, a, b)",
       .jax = "jnp.where(c, a, b)"},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_functions(Rows& rows) {
  using T = const Tensor&;
  const Rows added = {
      of_one("abs", abs, "torch.abs(a)", "jnp.abs(a)"),
      of_one(
          "negative", [](T a) { return -a; }, "-a", "-a"),
      of_one("sign", sign, "torch.sign(a)", "jnp.sign(a)", "-1 1", no_gradient),
      of_one("square", square, "torch.square(a)", "jnp.square(a)"),
      of_one("reciprocal", reciprocal, "torch.reciprocal(a)", "jnp.reciprocal(a)", positive),
      of_one("exp", exp, "torch.exp(a)", "jnp.exp(a)", wide),
      of_one("exp2", exp2, "torch.exp2(a)", "jnp.exp2(a)", wide),
      of_one("expm1", expm1, "torch.expm1(a)", "jnp.expm1(a)"),
      of_one("log", log, "torch.log(a)", "jnp.log(a)", positive),
      of_one("log2", log2, "torch.log2(a)", "jnp.log2(a)", positive),
      of_one("log10", log10, "torch.log10(a)", "jnp.log10(a)", positive),
      of_one("log1p", log1p, "torch.log1p(a)", "jnp.log1p(a)", positive),
      of_one("sqrt", sqrt, "torch.sqrt(a)", "jnp.sqrt(a)", positive),
      of_one("rsqrt", rsqrt, "torch.rsqrt(a)", "lax.rsqrt(a)", positive),
      of_one("cbrt", cbrt, "", "jnp.cbrt(a)", positive),
      of_one("sin", sin, "torch.sin(a)", "jnp.sin(a)", wide),
      of_one("cos", cos, "torch.cos(a)", "jnp.cos(a)", wide),
      of_one("tan", tan, "torch.tan(a)", "jnp.tan(a)"),
      of_one("asin", asin, "torch.asin(a)", "jnp.arcsin(a)", within_one),
      of_one("acos", acos, "torch.acos(a)", "jnp.arccos(a)", within_one),
      of_one("atan", atan, "torch.atan(a)", "jnp.arctan(a)", wide),
      of_one("sinh", sinh, "torch.sinh(a)", "jnp.sinh(a)"),
      of_one("cosh", cosh, "torch.cosh(a)", "jnp.cosh(a)"),
      of_one("asinh", asinh, "torch.asinh(a)", "jnp.arcsinh(a)", wide),
      of_one("acosh", acosh, "torch.acosh(a)", "jnp.arccosh(a)", "1.1 4"),
      of_one("atanh", atanh, "torch.atanh(a)", "jnp.arctanh(a)", within_one),
      of_one("sinc", sinc, "torch.sinc(a)", "jnp.sinc(a)", "0.1 3"),
      of_one("floor", floor, "torch.floor(a)", "jnp.floor(a)", wide, no_gradient),
      of_one("ceil", ceil, "torch.ceil(a)", "jnp.ceil(a)", wide, no_gradient),
      of_one("round", round, "torch.round(a)", "jnp.round(a)", wide, no_gradient),
      of_one("trunc", trunc, "torch.trunc(a)", "jnp.trunc(a)", wide, no_gradient),
      of_one("is_finite", is_finite, "torch.isfinite(a)", "jnp.isfinite(a)", wide, no_gradient),
      of_one("is_nan", is_nan, "torch.isnan(a)", "jnp.isnan(a)", wide, no_gradient),
      of_one(
          "is_inf", [](T a) { return is_inf(a); }, "torch.isinf(a)", "jnp.isinf(a)", wide, no_gradient),
      of_one(
          "nan_to_num", [](T a) { return nan_to_num(a); }, "torch.nan_to_num(a)", "jnp.nan_to_num(a)"),
      of_one("deg2rad", deg2rad, "torch.deg2rad(a)", "jnp.deg2rad(a)"),
      of_one("rad2deg", rad2deg, "torch.rad2deg(a)", "jnp.rad2deg(a)"),
      of_one(
          "clip_by_value", [](T a) { return clip_by_value(a, -0.5, 0.5); }, "torch.clamp(a, -0.5, 0.5)",
          "jnp.clip(a, -0.5, 0.5)"),
      of_one(
          "cast", [](T a) { return cast(a, bf16); }, "a.to(torch.bfloat16).to(torch.float32)", "a.astype(jnp.bfloat16)",
          "-1 1", no_gradient),
      of_one("erf", erf, "torch.erf(a)", "jax.scipy.special.erf(a)", wide),
      of_one("erfc", erfc, "torch.erfc(a)", "jax.scipy.special.erfc(a)"),
      of_one("erfinv", erfinv, "torch.erfinv(a)", "jax.scipy.special.erfinv(a)", within_one),
      of_one("ndtri", ndtri, "torch.special.ndtri(a)", "jax.scipy.special.ndtri(a)", share, no_gradient),
      of_one("lgamma", lgamma, "torch.lgamma(a)", "jax.scipy.special.gammaln(a)", positive),
      of_one("digamma", digamma, "torch.digamma(a)", "jax.scipy.special.digamma(a)", positive),
      of_one(
          "polygamma", [](T a) { return polygamma(2, a); }, "torch.polygamma(2, a)", "", positive, no_gradient),
      of_one("bessel_i0", bessel_i0, "torch.special.i0(a)", "jax.scipy.special.i0(a)", wide),
      of_one("bessel_i0e", bessel_i0e, "torch.special.i0e(a)", "jax.scipy.special.i0e(a)", wide),
      of_one("bessel_i1", bessel_i1, "torch.special.i1(a)", "jax.scipy.special.i1(a)", wide),
      of_one("bessel_i1e", bessel_i1e, "torch.special.i1e(a)", "jax.scipy.special.i1e(a)", wide),
      of_one("bessel_j0", bessel_j0, "torch.special.bessel_j0(a)", "", wide, no_gradient),
      of_one("bessel_j1", bessel_j1, "torch.special.bessel_j1(a)", "", wide, no_gradient),
      of_one("bessel_y0", bessel_y0, "torch.special.bessel_y0(a)", "", positive, no_gradient),
      of_one("bessel_y1", bessel_y1, "torch.special.bessel_y1(a)", "", positive, no_gradient),
      of_one("bessel_k0", bessel_k0, "torch.special.modified_bessel_k0(a)", "", positive, no_gradient),
      of_one("bessel_k0e", bessel_k0e, "torch.special.scaled_modified_bessel_k0(a)", "", positive, no_gradient),
      of_one("bessel_k1", bessel_k1, "torch.special.modified_bessel_k1(a)", "", positive, no_gradient),
      of_one("bessel_k1e", bessel_k1e, "torch.special.scaled_modified_bessel_k1(a)", "", positive, no_gradient),
      of_one("expint", expint, "", "jax.scipy.special.expi(a)", positive, no_gradient),
      of_one("spence", spence, "", "jax.scipy.special.spence(a)", positive, no_gradient),
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

void add_activations(Rows& rows) {
  using T = const Tensor&;
  const Rows added = {
      of_one("tanh", tanh, "torch.tanh(a)", "jnp.tanh(a)", wide),
      of_one("sigmoid", sigmoid, "torch.sigmoid(a)", "nn.sigmoid(a)", wide),
      of_one("relu", relu, "F.relu(a)", "nn.relu(a)"),
      of_one("relu6", relu6, "F.relu6(a)", "nn.relu6(a)", wide),
      of_one("gelu", gelu, "F.gelu(a)", "nn.gelu(a, approximate=False)", wide),
      of_one(
          "gelu tanh", [](T a) { return gelu(a, {.approximate = true}); }, "F.gelu(a, approximate='tanh')",
          "nn.gelu(a)", wide),
      of_one("softplus", softplus, "F.softplus(a)", "nn.softplus(a)", wide),
      of_one("silu", silu, "F.silu(a)", "nn.silu(a)", wide),
      of_one("elu", elu, "F.elu(a)", "nn.elu(a)", wide),
      of_one("selu", selu, "F.selu(a)", "nn.selu(a)", wide),
      of_one("celu", celu, "F.celu(a)", "nn.celu(a)", wide),
      of_one(
          "leaky_relu", [](T a) { return leaky_relu(a, 0.2); }, "F.leaky_relu(a, 0.2)", "nn.leaky_relu(a, 0.2)"),
      of_one("hard_sigmoid", hard_sigmoid, "F.hardsigmoid(a)", "nn.hard_sigmoid(a)", wide),
      of_one("hard_silu", hard_silu, "F.hardswish(a)", "nn.hard_silu(a)", wide),
      of_one("hard_tanh", hard_tanh, "F.hardtanh(a)", "nn.hard_tanh(a)", wide),
      of_one("mish", mish, "F.mish(a)", "nn.mish(a)", wide),
      of_one("softsign", softsign, "F.softsign(a)", "nn.soft_sign(a)", wide),
      of_one(
          "threshold", [](T a) { return threshold(a, 0.1, 20); }, "F.threshold(a, 0.1, 20.0)", ""),
      of_one("hard_shrink", hard_shrink, "F.hardshrink(a)", "", wide),
      of_one("soft_shrink", soft_shrink, "F.softshrink(a)", "", wide),
      of_one("tanh_shrink", tanh_shrink, "F.tanhshrink(a)", "", wide),
      of_one("log_sigmoid", log_sigmoid, "F.logsigmoid(a)", "nn.log_sigmoid(a)", wide),
      of_one("squareplus", squareplus, "", "nn.squareplus(a)", wide),
      of_one("sparse_plus", sparse_plus, "", "nn.sparse_plus(a)", wide),
      of_one("sparse_sigmoid", sparse_sigmoid, "", "nn.sparse_sigmoid(a)", wide),
      {.name = "prelu",
       .inputs = {"f32[n,256]", "f32[256]"},
       .extents = rows_of_256,
       .ours = [](const Case& x) { return prelu(x[0], x[1]); },
       .torch = "F.prelu(a, b)",
       .jax = "jnp.where(a > 0, a, a * b)"},
      {.name = "glu",
       .inputs = {"f32[n,256]"},
       .extents = rows_of_256,
       .ours = [](const Case& x) { return glu(x[0]); },
       .torch = "F.glu(a)",
       .jax = "nn.glu(a)"},
      {.name = "softmax",
       .inputs = {"f32[n,256] -4 4"},
       .extents = rows_of_256,
       .ours = [](const Case& x) { return softmax(x[0]); },
       .torch = "F.softmax(a, -1)",
       .jax = "nn.softmax(a, -1)"},
      {.name = "softmax columns",
       .inputs = {"f32[n,256] -4 4"},
       .extents = rows_of_256,
       .ours = [](const Case& x) { return softmax(x[0], 0); },
       .torch = "F.softmax(a, 0)",
       .jax = "nn.softmax(a, 0)"},
      {.name = "log_softmax",
       .inputs = {"f32[n,256] -4 4"},
       .extents = rows_of_256,
       .ours = [](const Case& x) { return log_softmax(x[0]); },
       .torch = "F.log_softmax(a, -1)",
       .jax = "nn.log_softmax(a, -1)"},
  };
  rows.insert(rows.end(), added.begin(), added.end());
}

}  // namespace

void add_formulas(Rows& rows) {
  add_arithmetic(rows);
  add_functions(rows);
  add_activations(rows);
}

}  // namespace gradus::bench
