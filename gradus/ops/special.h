/// Further elementwise functions: circular, hyperbolic, gamma and error functions, and functions for statistics.
/// Operands broadcast and agree in dtype, as in gradus/ops/elementwise.h. All take floats alone unless they say
/// otherwise. All have gradients of every order; a cotangent of 0 at a pole gives 0.
#pragma once
#include "gradus/ops/elementwise.h"
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].
Tensor acos(const Tensor& x);
/// The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].
Tensor asin(const Tensor& x);
/// The angle in (-pi/2, pi/2) whose tangent is x.
Tensor atan(const Tensor& x);
/// The angle of the point (x, y) in [-pi, pi]. The gradient at the origin is 0.
Tensor atan2(const NumberOrTensor& y, const NumberOrTensor& x);
/// The hyperbolic sine.
Tensor sinh(const Tensor& x);
/// The hyperbolic cosine.
Tensor cosh(const Tensor& x);
/// The inverse hyperbolic sine.
Tensor asinh(const Tensor& x);
/// The inverse hyperbolic cosine. NaN below 1.
Tensor acosh(const Tensor& x);
/// The inverse hyperbolic tangent. Infinite at -1 and 1, NaN beyond.
Tensor atanh(const Tensor& x);

/// 2^x.
Tensor exp2(const Tensor& x);
/// The logarithm to base 2.
Tensor log2(const Tensor& x);
/// The logarithm to base 10.
Tensor log10(const Tensor& x);
/// The cube root, also for negative x. The gradient at 0 is infinite.
Tensor cbrt(const Tensor& x);
/// log(exp(a) + exp(b)), without overflow. Two equal infinities give that infinity.
Tensor logaddexp(const NumberOrTensor& a, const NumberOrTensor& b);

/// 1 - erf(x), exact also where the result is small.
Tensor erfc(const Tensor& x);
/// Inverse of erf: the y with erf(y) = x. Infinite at -1 and 1, NaN beyond.
Tensor erfinv(const Tensor& x);
/// Inverse of erfc: the y with erfc(y) = x, for x in [0, 2].
Tensor erfcinv(const Tensor& x);
/// Quantile of the normal distribution: a number lies below it with probability p. Infinite at 0 and 1, NaN beyond.
Tensor ndtri(const Tensor& p);
/// log |gamma(x)|: infinite at 0, -1, -2 ...
Tensor lgamma(const Tensor& x);
/// The derivative of lgamma: infinite at 0, NaN at -1, -2 ...
Tensor digamma(const Tensor& x);
/// The derivative of order `order` of digamma (digamma itself for 0): the order is structure, at most 60.
Tensor polygamma(int order, const Tensor& x);
/// Logarithm of the beta function: sum(lgamma(x)) - lgamma(sum(x)) along the last axis, which is removed; its limit
/// where poles of both cancel.
Tensor lbeta(const Tensor& x);
/// The modified Bessel function of the first kind of order 0.
Tensor bessel_i0(const Tensor& x);
/// exp(-|x|) bessel_i0(x), which does not overflow.
Tensor bessel_i0e(const Tensor& x);
/// The modified Bessel function of the first kind of order 1.
Tensor bessel_i1(const Tensor& x);
/// exp(-|x|) bessel_i1(x), which does not overflow.
Tensor bessel_i1e(const Tensor& x);
/// The Bessel function of the first kind of order 0; absolute error 1e-15. 0 at both infinities.
Tensor bessel_j0(const Tensor& x);
/// The Bessel function of the first kind of order 1, as exact as bessel_j0.
Tensor bessel_j1(const Tensor& x);
/// The Bessel function of the second kind of order 0, as exact as bessel_j0 away from 0. -infinity for x <= 0, 0 at
/// infinity.
Tensor bessel_y0(const Tensor& x);
/// The Bessel function of the second kind of order 1, as exact as bessel_j0 away from 0. -infinity for x <= 0, 0 at
/// infinity.
Tensor bessel_y1(const Tensor& x);
/// The modified Bessel function of the second kind of order 0, relative error 2e-15. Infinite for x <= 0.
Tensor bessel_k0(const Tensor& x);
/// exp(x) bessel_k0(x).
Tensor bessel_k0e(const Tensor& x);
/// The modified Bessel function of the second kind of order 1, relative error 2e-15. Infinite for x <= 0.
Tensor bessel_k1(const Tensor& x);
/// exp(x) bessel_k1(x).
Tensor bessel_k1e(const Tensor& x);
/// Fresnel's integral of cos(pi t^2 / 2) from 0 to x; relative error 1e-15.
Tensor fresnel_cos(const Tensor& x);
/// Fresnel's integral of sin(pi t^2 / 2) from 0 to x; relative error 1e-15.
Tensor fresnel_sin(const Tensor& x);
/// The exponential integral, of exp(t) / t from -infinity to x, for x >= 0. -infinity at 0, NaN below. Relative error
/// 1e-15; absolute near the zero at 0.37.
Tensor expint(const Tensor& x);
/// Spence's function, the integral from x to 1 of log(t) / (t - 1), which is Li2(1 - x). NaN below 0. Relative error
/// 1e-15. Gradients up to order 12.
Tensor spence(const Tensor& x);
/// Dawson's integral: exp(-x^2) times the integral from 0 to x of exp(t^2); relative error 1e-15.
Tensor dawsn(const Tensor& x);

/// x log(y), but 0 where x is 0, whatever y is; the gradients are 0 there.
Tensor xlogy(const NumberOrTensor& x, const NumberOrTensor& y);
/// x log(1 + y), but 0 where x is 0, whatever y is; the gradients are 0 there.
Tensor xlog1py(const NumberOrTensor& x, const NumberOrTensor& y);
/// x / y, but 0 where x is 0, whatever y is; the gradients are 0 there.
Tensor xdivy(const NumberOrTensor& x, const NumberOrTensor& y);
/// x / y, but 0 where y is 0; the gradients are 0 there.
Tensor divide_no_nan(const NumberOrTensor& x, const NumberOrTensor& y);
/// 1 / x, but 0 where x is 0.
Tensor reciprocal_no_nan(const Tensor& x);
/// x * y, but 0 where y is 0, even if x is infinite or NaN.
Tensor multiply_no_nan(const NumberOrTensor& x, const NumberOrTensor& y);
/// 1 / x.
Tensor reciprocal(const Tensor& x);
/// (a - b)^2, also for integers.
Tensor squared_difference(const NumberOrTensor& a, const NumberOrTensor& b);
/// x rounded towards zero. The gradient is 0.
Tensor trunc(const Tensor& x);
/// a - b * trunc(a / b): zero, or with the sign of a, exact. Integers: truncatemod(x, 0) = x.
Tensor truncatemod(const NumberOrTensor& a, const NumberOrTensor& b);
/// a^b of integers, which wrap around. For negative b it is 1 / a^-b truncated, and 0 for a = 0. InvalidArgument for
/// floats.
Tensor integer_pow(const NumberOrTensor& a, const NumberOrTensor& b);
/// Greatest common divisor of integers, not negative; gcd(0, 0) = 0. It wraps where |x| does.
Tensor gcd(const NumberOrTensor& a, const NumberOrTensor& b);
/// Least common multiple of integers, not negative, 0 with a 0; wraps around.
Tensor lcm(const NumberOrTensor& a, const NumberOrTensor& b);
/// |x| with the sign of `sign`; zeros have a sign, too. The gradient of `sign` is 0.
Tensor copysign(const NumberOrTensor& x, const NumberOrTensor& sign);
/// The polynomial coefficients[0] x^(n-1) + ... + coefficients[n-1], by Horner's rule; 0 without coefficients.
Tensor polyval(const std::vector<Tensor>& coefficients, const Tensor& x);
/// The sum of tensors of one spec. InvalidArgument without any.
Tensor add_n(const std::vector<Tensor>& inputs);

/// Options of is_inf.
struct IsInfOptions {
  bool detect_negative = true;  // true for -infinity
  bool detect_positive = true;  // true for infinity
};
/// True where x is infinite, with a sign that the options select.
Tensor is_inf(const Tensor& x, IsInfOptions options = {});

// Operators, and functions of other names, under TensorFlow's names.

/// a + b.
Tensor add(const NumberOrTensor& a, const NumberOrTensor& b);
/// a - b.
Tensor subtract(const NumberOrTensor& a, const NumberOrTensor& b);
/// a * b, elementwise.
Tensor multiply(const NumberOrTensor& a, const NumberOrTensor& b);
/// a / b. Integers truncate, as operator/ says.
Tensor divide(const NumberOrTensor& a, const NumberOrTensor& b);
/// -x.
inline Tensor negative(const Tensor& x) { return -x; }
/// a < b.
Tensor less(const NumberOrTensor& a, const NumberOrTensor& b);
/// a <= b.
Tensor less_equal(const NumberOrTensor& a, const NumberOrTensor& b);
/// a > b.
Tensor greater(const NumberOrTensor& a, const NumberOrTensor& b);
/// a >= b.
Tensor greater_equal(const NumberOrTensor& a, const NumberOrTensor& b);
/// floor_divide(a, b).
Tensor floordiv(const NumberOrTensor& a, const NumberOrTensor& b);
/// mod(a, b).
Tensor floormod(const NumberOrTensor& a, const NumberOrTensor& b);
/// round(x).
inline Tensor rint(const Tensor& x) { return round(x); }

}  // namespace gradus
