/// Further elementwise functions: circular, hyperbolic, gamma, error functions and what statistics needs. Operands
/// broadcast and agree in dtype, as in gradus/ops/elementwise.h; all take floats alone unless they say otherwise. Every
/// one has gradients of every order; a cotangent of 0 at a pole gives 0.
#pragma once
#include "gradus/ops/elementwise.h"
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].
Tensor acos(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor atan(const Tensor& x);
/// The angle of the point (x, y) in [-pi, pi]. The gradient at the origin is 0.
Tensor atan2(const NumberOrTensor& y, const NumberOrTensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
/// NaN below 1.
Tensor acosh(const Tensor& x);
/// Infinite at -1 and 1, NaN beyond.
Tensor atanh(const Tensor& x);

/// 2^x
Tensor exp2(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
/// The cube root, of negative x too. The gradient at 0 is infinite.
Tensor cbrt(const Tensor& x);
/// log(exp(a) + exp(b)), without overflow; of two equal infinities that infinity.
Tensor logaddexp(const NumberOrTensor& a, const NumberOrTensor& b);

/// 1 - erf(x), exact also where that is small.
Tensor erfc(const Tensor& x);
/// The y with erf(y) = x: infinite at -1 and 1, NaN beyond.
Tensor erfinv(const Tensor& x);
/// The y with erfc(y) = x, for x in [0, 2].
Tensor erfcinv(const Tensor& x);
/// The y below which a normally distributed number lies with probability p: infinite at 0 and 1, NaN beyond.
Tensor ndtri(const Tensor& p);
/// log |gamma(x)|: infinite at 0, -1, -2 ...
Tensor lgamma(const Tensor& x);
/// The derivative of lgamma: infinite at 0, NaN at -1, -2 ...
Tensor digamma(const Tensor& x);
/// The derivative of order `order` of digamma (digamma itself for 0): the order is structure, at most 60.
Tensor polygamma(int order, const Tensor& x);
/// The logarithm of the beta function: sum(lgamma(x)) - lgamma(sum(x)) along the last axis, which goes.
Tensor lbeta(const Tensor& x);
/// The modified Bessel functions of the first kind of orders 0 and 1; with an e times exp(-|x|), which does not
/// overflow.
Tensor bessel_i0(const Tensor& x);
Tensor bessel_i0e(const Tensor& x);
Tensor bessel_i1(const Tensor& x);
Tensor bessel_i1e(const Tensor& x);
/// The Bessel functions of the first kind of orders 0 and 1, within 1e-15 of it; 0 at both infinities. The sine in it
/// takes |x| beyond 2^43 for 2^43.
Tensor bessel_j0(const Tensor& x);
Tensor bessel_j1(const Tensor& x);
/// Those of the second kind, as exact away from 0; -infinity for x <= 0, and 0 at infinity.
Tensor bessel_y0(const Tensor& x);
Tensor bessel_y1(const Tensor& x);
/// The modified ones of the second kind, relative error 2e-15; with an e times exp(x). Infinite for x <= 0.
Tensor bessel_k0(const Tensor& x);
Tensor bessel_k0e(const Tensor& x);
Tensor bessel_k1(const Tensor& x);
Tensor bessel_k1e(const Tensor& x);
/// Fresnel's integral, from 0 to x, of cos(pi t^2 / 2); relative error 1e-15.
Tensor fresnel_cos(const Tensor& x);
/// Fresnel's integral, from 0 to x, of sin(pi t^2 / 2); relative error 1e-15.
Tensor fresnel_sin(const Tensor& x);
/// The exponential integral, of exp(t) / t from -infinity to x, for x >= 0: -infinity at 0, NaN below. Relative error
/// 1e-15, absolute near the zero at 0.37.
Tensor expint(const Tensor& x);
/// Spence's function, the integral from x to 1 of log(t) / (t - 1), which is Li2(1 - x): NaN below 0. Relative error
/// 1e-15. Gradients up to the order 12.
Tensor spence(const Tensor& x);
/// Dawson's integral: exp(-x^2) times the integral from 0 to x of exp(t^2); relative error 1e-15.
Tensor dawsn(const Tensor& x);

/// x log(y), x log(1 + y) and x / y, but 0 where x is 0, whatever y is; there the gradients are 0.
Tensor xlogy(const NumberOrTensor& x, const NumberOrTensor& y);
Tensor xlog1py(const NumberOrTensor& x, const NumberOrTensor& y);
Tensor xdivy(const NumberOrTensor& x, const NumberOrTensor& y);
/// x / y, but 0 where y is 0; there the gradients are 0.
Tensor divide_no_nan(const NumberOrTensor& x, const NumberOrTensor& y);
/// 1 / x, but 0 where x is 0.
Tensor reciprocal_no_nan(const Tensor& x);
/// x * y, but 0 where y is 0, even if x is infinite or NaN.
Tensor multiply_no_nan(const NumberOrTensor& x, const NumberOrTensor& y);
/// 1 / x
Tensor reciprocal(const Tensor& x);
/// (a - b)^2; integers too.
Tensor squared_difference(const NumberOrTensor& a, const NumberOrTensor& b);
/// Towards zero. The gradient is 0.
Tensor trunc(const Tensor& x);
/// a - b * trunc(a / b): zero, or with the sign of a; exact while |a / b| < 2^53. Integers: truncatemod(x, 0) = x.
Tensor truncatemod(const NumberOrTensor& a, const NumberOrTensor& b);
/// a^b of integers, which wrap around; of negative b, 1 / a^-b truncated, 0 of 0. InvalidArgument of floats.
Tensor integer_pow(const NumberOrTensor& a, const NumberOrTensor& b);
/// The greatest common divisor of integers, not negative; gcd(0, 0) = 0. As others, it wraps where |x| does.
Tensor gcd(const NumberOrTensor& a, const NumberOrTensor& b);
/// The least common multiple of integers, not negative, 0 of 0; wraps around.
Tensor lcm(const NumberOrTensor& a, const NumberOrTensor& b);
/// |x| with the sign of `sign`, which zeros have too. The gradient of `sign` is 0.
Tensor copysign(const NumberOrTensor& x, const NumberOrTensor& sign);
/// The polynomial coefficients[0] x^(n-1) + ... + coefficients[n-1], by Horner's rule; 0 of none.
Tensor polyval(const std::vector<Tensor>& coefficients, const Tensor& x);
/// The sum of tensors of one spec. InvalidArgument of none.
Tensor add_n(const std::vector<Tensor>& inputs);

struct IsInfOptions {
  bool detect_negative = true;
  bool detect_positive = true;
};
/// Boolean: whether x is infinite, of the signs that are asked for.
Tensor is_inf(const Tensor& x, IsInfOptions options = {});

// The operators, and functions of other names, under TensorFlow's.

Tensor add(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor subtract(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor multiply(const NumberOrTensor& a, const NumberOrTensor& b);
/// Integers truncate, as operator/ says.
Tensor divide(const NumberOrTensor& a, const NumberOrTensor& b);
inline Tensor negative(const Tensor& x) { return -x; }
Tensor less(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor less_equal(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor greater(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor greater_equal(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor floordiv(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor floormod(const NumberOrTensor& a, const NumberOrTensor& b);
inline Tensor rint(const Tensor& x) { return round(x); }

}  // namespace gradus
