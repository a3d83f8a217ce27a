/// The elementary functions as scalar formulas. For scalar::Value (f32 and f64) they record instructions, so that every
/// code generator and the interpreter compute the same bits. For scalar::Real they are the standard library's
/// functions, which the recorded ones are tested against. NaN gives NaN. Infinities and zeros of either sign are exact;
/// results below the least normal number may be 0. Polynomials are weighted near-minimax fits made for these intervals.
#pragma once
#include <cmath>
#include "gradus/scalar/scalar.h"

namespace gradus::scalar {

// The comments give the worst error measured over 3*10^5 arguments, in units of the last place: f32, f64.

Value exp(const Value& x);      // 0.63 0.63
Value expm1(const Value& x);    // 1.4 1.8: exp(x) - 1
Value sigmoid(const Value& x);  // 2.2 2.0: 1 / (1 + exp(-x))
Value tanh(const Value& x);     // 1.4 1.4
Value log(const Value& x);      // 0.76 0.79
Value log1p(const Value& x);    // 0.76 0.80: log(1 + x)
Value erf(const Value& x);      // 1.2 1.2
/// x^y as IEEE 754 defines pow.
Value pow(const Value& x, const Value& y);  // 0.50 1.4
/// The reduction of x is exact enough for every finite x. NaN for infinities.
Value sin(const Value& x);  // 0.50 0.76
Value cos(const Value& x);  // 0.50 0.77
Value tan(const Value& x);  // 0.50 2.1

/// |x| with the sign of `sign`.
Value copy_sign(const Value& x, const Value& sign);

inline Real exp(Real x) { return {std::exp(x.v), x.type}; }
inline Real expm1(Real x) { return {std::expm1(x.v), x.type}; }
inline Real sigmoid(Real x) { return {1 / (1 + std::exp(-x.v)), x.type}; }
inline Real tanh(Real x) { return {std::tanh(x.v), x.type}; }
inline Real log(Real x) { return {std::log(x.v), x.type}; }
inline Real log1p(Real x) { return {std::log1p(x.v), x.type}; }
inline Real pow(Real x, Real y) { return {std::pow(x.v, y.v), joint_type(x, y)}; }
inline Real sin(Real x) { return {std::sin(x.v), x.type}; }
inline Real cos(Real x) { return {std::cos(x.v), x.type}; }
inline Real tan(Real x) { return {std::tan(x.v), x.type}; }
inline Real erf(Real x) { return {std::erf(x.v), x.type}; }

}  // namespace gradus::scalar
