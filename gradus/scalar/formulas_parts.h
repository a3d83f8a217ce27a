/// Parts that the elementary functions share: the layout of the two float formats, and polynomials.
#pragma once
#include <initializer_list>
#include <limits>
#include <span>
#include "gradus/scalar/formulas.h"
#include "gradus/scalar/rare_parts.h"

namespace gradus::scalar {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Constants that differ between f32 and f64.
struct Format {
  DType integer;             // integer type of the same width
  int mantissa;              // number of explicit bits
  std::int64_t one;          // the bits of 1.0
  std::int64_t sqrt_half;    // the bits of sqrt(1/2), rounded
  std::int64_t sign;         // the sign bit
  double round;              // 1.5 * 2^mantissa: adding it rounds to an integer, which then stands in the low bits
  double ln2_high, ln2_low;  // their sum is log(2); the first is rounded to the format
  double exponent_limit;     // the largest n for which 2^n is finite
};
inline constexpr Format format_f32{.integer = i32,
                                   .mantissa = 23,
                                   .one = 0x3f800000,
                                   .sqrt_half = 0x3f3504f3,
                                   .sign = std::numeric_limits<std::int32_t>::min(),
                                   .round = 12582912.0,
                                   .ln2_high = 0.693147182464599609375,
                                   .ln2_low = -1.904654299957768e-9,
                                   .exponent_limit = 127};
inline constexpr Format format_f64{.integer = i64,
                                   .mantissa = 52,
                                   .one = 0x3ff0000000000000,
                                   .sqrt_half = 0x3fe6a09e667f3bcd,
                                   .sign = std::numeric_limits<std::int64_t>::min(),
                                   .round = 6755399441055744.0,
                                   .ln2_high = 0.693147180559945286227,
                                   .ln2_low = 2.3190468138462996e-17,
                                   .exponent_limit = 1023};
inline const Format& format_of(const Value& x) { return x.type() == f32 ? format_f32 : format_f64; }

/// c[0] x^(n-1) + ... + c[n-1], by Horner's rule.
inline Value polynomial(const Value& x, std::span<const double> c) {
  Value sum = c.front();
  for (const double next : c.subspan(1)) sum = fma(sum, x, next);
  return sum;
}
inline Value polynomial(const Value& x, std::initializer_list<double> c) {
  return polynomial(x, std::span(c.begin(), c.size()));
}

/// `number` as a constant of the type of x.
inline Value constant_like(const Value& x, const Literal& number) {
  return {x.code(), x.code()->add({.op = Opcode::constant, .type = x.type(), .bits = number.bits_as(x.type())})};
}

/// a shifted by `by`, of the same type, filled with zeros; 0 <= by < width.
inline Value shift_left(const Value& a, const Value& by) { return record(Opcode::shift_left, a, by); }
inline Value shift_right_logical(const Value& a, const Value& by) { return record(Opcode::shift_right_logical, a, by); }

/// x = m 2^e with m in [sqrt(1/2), sqrt(2)), for x at least the least normal number.
struct Mantissa {
  Value m, e;
};
Mantissa split(const Value& x);

/// sin and cos without a rare part, for |x| up to trig_bound; larger x are clamped to it.
Value bounded_sin(const Value& x);
Value bounded_cos(const Value& x);
inline constexpr double trig_bound = 0x1p43;
/// sin(|x| - eighths pi / 4 + shift) for f64 |x| beyond trig_bound and a tiny `shift`, without cancellation.
Value far_sin(const Value& x, int eighths, const Value& shift);

/// exp(high + low), for |low| far below 1 and exactly zero if high is not finite.
Value exp_of_sum(const Value& high, const Value& low);

}  // namespace gradus::scalar
