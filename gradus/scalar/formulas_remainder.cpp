/// The remainders of divisions, exact at every quotient. Quotients that a double holds need one division. Beyond, a is
/// m 2^k b's last place, and 2^k is taken modulo b's mantissa by squaring, in products whose rounding errors fma gives.
/// Decision 357 has the reasons.
#include <cmath>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

constexpr double largest_quotient = 0x1p53;

/// The number in [-m/2, m/2] that differs from v, |v| < 1.5 m, by 0 or m.
Value centred(const Value& v, const Value& m) {
  const Value half = m * 0.5;
  return select(v > half, v - m, select(v < -half, v + m, v));
}

/// a b modulo m, centred, for integers |a|, |b| <= m/2 and 2^52 <= m < 2^53. The quotient is below 2^51 and off by less
/// than 3/4, so that everything except the product itself is exact.
Value product_modulo(const Value& a, const Value& b, const Value& m) {
  const Value product = a * b, error = fma(a, b, -product);
  return centred(fma(-round_even(product / m), m, product) + error, m);
}

/// 2^k for an i64 k within the exponents of f64.
Value power_of_integer(const Value& k) { return bitcast(shift_left(k + std::int64_t{1023}, 52), f64); }

/// x modulo y for positive doubles, x / y at least 2^52 and below 2^(32 * 2^squarings).
Value remainder_by_squaring(const Value& x, const Value& y, int squarings) {
  constexpr std::int64_t fraction = (std::int64_t{1} << 52) - 1, integral = std::int64_t{1075} << 52;
  const auto exponent = [](const Value& v) { return shift_right_logical(bitcast(v, i64), 52); };
  const auto mantissa = [](const Value& v) { return bitcast((bitcast(v, i64) & fraction) | integral, f64); };
  const Value m = mantissa(y), own = mantissa(x), k = exponent(x) - exponent(y);
  Value power = power_of_integer(shift_right_logical(k, squarings));
  for (int bit = squarings - 1; bit >= 0; --bit) {
    power = product_modulo(power, power, m);
    const Value is_odd = (shift_right_logical(k, bit) & std::int64_t{1}) == std::int64_t{1};
    power = select(is_odd, centred(power + power, m), power);
  }
  const Value rest = product_modulo(power, centred(select(own >= m, own - m, own), m), m);
  const Value whole = select(rest < 0.0, rest + m, rest);
  return whole * 0x1p-52 * bitcast(shift_left(exponent(y), 52), f64);
}

/// x modulo y for doubles x >= 0, y >= 0; NaN if y is 0, or x is infinite or NaN.
Value positive_remainder(const Value& x, const Value& y, bool single) {
  // The quotient is rounded before it is truncated, so the remainder may be off by one y.
  const Value quotient = x / y, q = truncate(quotient);
  const Value r = select(q == 0.0, x, fma(-q, y, x));
  const Value usual = select(r < 0.0, r + y, select(r >= y, r - y, r));
  const Value rare = select((x < infinity) & (y > 0.0), remainder_by_squaring(x, y, single ? 4 : 6), nan);
  return select_rarely(quotient >= largest_quotient, rare, usual);
}

/// The remainder of floor from one that differs by b or nothing. A sum that is rounded to b stays b.
Value floored(const Value& r, const Value& b) {
  const Value wrong_side = ((r < 0.0) ^ (b < 0.0)) & (!(r == 0.0));
  return select(wrong_side, r + b, r);
}

}  // namespace

Value fmod(const Value& a, const Value& b) {
  const Value rest = positive_remainder(abs(convert(a, f64)), abs(convert(b, f64)), a.type() == f32);
  return copy_sign(convert(rest, a.type()), a);
}

Value floor_mod(const Value& a, const Value& b) {
  // The quotient is rounded before its floor is taken, so the remainder may be off by one b.
  const Value quotient = a / b, q = floor(quotient);
  const Value usual = select(q == 0.0, a, fma(-q, b, a));
  const double exact_below = a.type() == f32 ? 0x1p24 : largest_quotient;
  const Value rest = floored(select_rarely(abs(quotient) >= exact_below, fmod(a, b), usual), b);
  return copy_sign(rest, b);  // the sign of zeros; other results already have it
}

Real floor_mod(Real a, Real b) {
  double rest = std::fmod(a.v, b.v);
  if (rest != 0 && (rest < 0) != (b.v < 0)) rest += b.v;
  return {rest == 0 ? std::copysign(0.0, b.v) : rest, joint_type(a, b)};
}

}  // namespace gradus::scalar
