/// The inverse circular, hyperbolic, gamma and error functions as scalar formulas, with the promises of
/// gradus/scalar/formulas.h. The gamma and error functions compute in f64 for both formats.
#pragma once
#include "gradus/scalar/formulas.h"

namespace gradus::scalar {

// The comments give the worst error measured over 3*10^5 arguments, in units of the last place: f32, f64.

Value exp2(const Value& x);   // 0.63 0.65: exact for integers
Value log2(const Value& x);   // 1.5 1.5: exact for powers of 2
Value log10(const Value& x);  // 1.6 1.5
Value sinh(const Value& x);   // 2.2 2.2
Value cosh(const Value& x);   // 1.1 1.1
Value asinh(const Value& x);  // 1.6 1.6
Value acosh(const Value& x);  // 1.9 1.7
Value atanh(const Value& x);  // 1.8 1.5
Value atan(const Value& x);   // 2.1 1.5
Value asin(const Value& x);   // 2.7 2.3
Value acos(const Value& x);   // 2.6 2.4
/// The angle of the point (x, y), 2.1 1.6: atan2 of IEEE 754, the zeros' signs and infinities included.
Value atan2(const Value& y, const Value& x);
Value erfc(const Value& x);  // 1.4 3.2: 1 - erf(x)
/// The inverse error function, and the quantile of the normal distribution: the y with erf(y) = x, and the y below
/// which a normally distributed number lies with probability p: 0.5 3.
Value erfinv(const Value& x);
Value ndtri(const Value& p);
/// The y with erfc(y) = x: 0.5 3.
Value erfcinv(const Value& x);
/// log |gamma(x)|, 0.5 3.1; infinite at 0, -1, -2 ... Near its zeros at negative x the error is relative to 1.
Value lgamma(const Value& x);
/// The derivative of lgamma, 0.5 4.5: infinite at 0, NaN at -1, -2 ... Near its zeros the error is relative to 1.
Value digamma(const Value& x);
/// The derivative of order `order` >= 1 of digamma: 0.5 4 for order 1, 11 for order 5.
Value polygamma(int order, const Value& x);

/// The modified Bessel function of the first kind I_order(x), times exp(-|x|) if `scaled`; order >= 0: 0.6 6 for orders
/// 0 and 1.
Value bessel_i(int order, bool scaled, const Value& x);
/// The Bessel function of the first kind J_order(x): absolute error below 1e-15 in f64.
Value bessel_j(int order, const Value& x);
/// The Bessel function of the second kind Y_order(x), with the same error; -infinity for x <= 0.
Value bessel_y(int order, const Value& x);
/// The modified Bessel function of the second kind K_order(x), times exp(x) if `scaled`; infinite for x <= 0: 0.6 8.
Value bessel_k(int order, bool scaled, const Value& x);
/// The integral from 0 to x of cos(pi t^2 / 2): 0.6 4.
Value fresnel_cos(const Value& x);
/// The integral from 0 to x of sin(pi t^2 / 2): 0.6 5.
Value fresnel_sin(const Value& x);
/// The integral from -infinity to x of exp(t) / t, for x >= 0; NaN below: 0.6 5. Near its zero at 0.37 the error is
/// relative to 1.
Value expint(const Value& x);
/// The integral from x to 1 of log(t) / (t - 1), for x >= 0, or its derivative of order `order`: 0.6 3; 6 for order 2.
Value spence(int order, const Value& x);
/// exp(-x^2) times the integral from 0 to x of exp(t^2): 0.6 5.
Value dawsn(const Value& x);

/// The derivatives of fresnel_cos and fresnel_sin: cos(pi x^2 / 2), or its sine: 0.5 2. NaN for infinities.
Value fresnel_slope(bool sine, const Value& x);
/// The derivative of dawsn, 1 - 2 x dawsn(x): 0.6 60; near its zero at 0.924 the error is relative to 1.
Value dawsn_slope(const Value& x);

/// a - b * trunc(a / b) for floats: the remainder with the sign of a, exact.
Value fmod(const Value& a, const Value& b);
/// a - b * floor(a / b) for floats, rounded once, with the sign of b; b itself where a is small and has the other sign.
Value floor_mod(const Value& a, const Value& b);

/// x Phi(x), with the normal distribution function Phi; 1 + erf(x / sqrt(2)), which is 2 Phi(x); and the derivative of
/// erf at x / sqrt(2). From -2 down they use the complement, without cancellation.
Value gelu(const Value& x);
Value twice_normal_cdf(const Value& x);
Value erf_slope(const Value& x);
/// x / 2 (1 + tanh(u)), 1 + tanh(x) and its derivative; from -1.9 down they use the sigmoid, without cancellation.
Value tanh_gate(const Value& x, const Value& u);
Value one_plus_tanh(const Value& x);
Value one_plus_tanh_slope(const Value& x);
/// x sigmoid(x), and x tanh(log(1 + exp(x))), also if a factor is smaller than the least normal number.
Value silu(const Value& x);
Value mish(const Value& x);

inline Real exp2(Real x) { return {std::exp2(x.v), x.type}; }
inline Real log2(Real x) { return {std::log2(x.v), x.type}; }
inline Real log10(Real x) { return {std::log10(x.v), x.type}; }
inline Real sinh(Real x) { return {std::sinh(x.v), x.type}; }
inline Real cosh(Real x) { return {std::cosh(x.v), x.type}; }
inline Real asinh(Real x) { return {std::asinh(x.v), x.type}; }
inline Real acosh(Real x) { return {std::acosh(x.v), x.type}; }
inline Real atanh(Real x) { return {std::atanh(x.v), x.type}; }
inline Real atan(Real x) { return {std::atan(x.v), x.type}; }
inline Real asin(Real x) { return {std::asin(x.v), x.type}; }
inline Real acos(Real x) { return {std::acos(x.v), x.type}; }
inline Real atan2(Real y, Real x) { return {std::atan2(y.v, x.v), joint_type(y, x)}; }
inline Real erfc(Real x) { return {std::erfc(x.v), x.type}; }
inline Real lgamma(Real x) { return {std::lgamma(x.v), x.type}; }
inline Real fmod(Real a, Real b) { return {std::fmod(a.v, b.v), joint_type(a, b)}; }
Real erfinv(Real x);
Real ndtri(Real p);
Real erfcinv(Real x);
Real digamma(Real x);
Real polygamma(int order, Real x);
Real bessel_i(int order, bool scaled, Real x);
Real bessel_j(int order, Real x);
Real bessel_y(int order, Real x);
Real bessel_k(int order, bool scaled, Real x);
Real fresnel_cos(Real x);
Real fresnel_sin(Real x);
Real expint(Real x);
Real spence(int order, Real x);
Real dawsn(Real x);
Real fresnel_slope(bool sine, Real x);
Real dawsn_slope(Real x);
Real floor_mod(Real a, Real b);
Real gelu(Real x);
Real twice_normal_cdf(Real x);
Real erf_slope(Real x);
Real tanh_gate(Real x, Real u);
Real one_plus_tanh(Real x);
Real one_plus_tanh_slope(Real x);
Real silu(Real x);
Real mish(Real x);

}  // namespace gradus::scalar
