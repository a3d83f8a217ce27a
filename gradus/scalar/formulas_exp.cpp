/// exp, expm1, exp2, sigmoid and the hyperbolic functions: x = n log(2) + r with |r| <= log(2)/2, and a polynomial in
/// r.
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

/// x within [low, high], NaN kept.
Value within(double low, double high, const Value& x) { return min(high, max(low, x)); }

struct Reduced {
  Value r, r_low;  // their sum is the argument less n log(2)
  Value power;     // 2^n, or 2^exponent_limit if n is one more
  Value overflow;  // true if it overflows
};

/// 2^n, where `rounded` holds n in its low bits and n is no more than the exponent's limit.
Value power_of_two(const Value& rounded) {
  const Format& format = format_of(rounded);
  return bitcast(shift_left(bitcast(rounded, format.integer), format.mantissa) + format.one, rounded.type());
}

/// `rounded` holds n in its low bits.
Reduced with_power(const Value& r, const Value& r_low, const Value& rounded) {
  const Format& format = format_of(r);
  const double last = format.round + format.exponent_limit;
  return {r, r_low, power_of_two(min(last, rounded)), rounded > last};
}

struct Remainder {
  Value r, r_low, rounded;
};
Remainder remainder(const Value& x) {
  const Format& format = format_of(x);
  const Value rounded = fma(x, 1.44269504088896340736, format.round);
  const Value n = rounded - format.round;
  const Value first = fma(n, -format.ln2_high, x);  // exact
  const Value second = n * -format.ln2_low;
  const Value r = first + second;
  return {r, (first - r) + second, rounded};
}

/// With 2^(n-halvings) for 2^n.
Reduced reduce(const Value& x, int halvings = 0) {
  const auto [r, r_low, rounded] = remainder(x);
  return with_power(r, r_low, halvings ? rounded - static_cast<double>(halvings) : rounded);
}

/// (exp(r) - 1 - r) / r^2 for |r| <= log(2)/2.
Value second_order(const Value& r) {
  return r.type() == f32
             ? polynomial(r,
                          {0.0001990659133, 0.001393373337, 0.008333287511, 0.04166646417, 0.1666666675, 0.5000000014})
             : polynomial(
                   r, {2.09212070756161889e-9, 2.51053134845733862e-8, 2.75572540665913157e-7, 2.7557255167956542e-6,
                       0.0000248015873461200463, 0.000198412698750041241, 0.00138888888888749244, 0.0083333333333260825,
                       0.041666666666666683, 0.16666666666666671, 0.5});
}

Value scaled(const Value& y, const Reduced& reduced) { return select(reduced.overflow, y + y, y); }

/// exp(r + r_low). The sum 1 + r keeps what it loses: two instructions that take exp from 0.96 to 0.6 ulp.
Value exponential(const Value& r, const Value& r_low) {
  const Value sum = r + 1.0;
  const Value lost = ((1.0 - sum) + r) + r_low;
  return sum + fma(r * r, second_order(r), lost);
}

/// exp(r + r_low) 2^n.
Value exponential(const Reduced& reduced) {
  return scaled(exponential(reduced.r, reduced.r_low) * reduced.power, reduced);
}

/// exp(x) for x of no more than 89, in f64 710; infinite where 2^n is.
Value bounded_exp(const Value& x) {
  const auto [r, r_low, rounded] = remainder(x);
  return exponential(r, r_low) * power_of_two(rounded);
}

}  // namespace

Value exp(const Value& x) {
  // Past these bounds the result has overflowed, or 2^n is 0.
  const bool single = x.type() == f32;
  return exponential(reduce(within(single ? -88.0 : -709.0, single ? 89.0 : 710.0, x)));
}

Value exp_of_sum(const Value& high, const Value& low) {
  const bool single = high.type() == f32;
  Reduced reduced = reduce(within(single ? -88.0 : -709.0, single ? 89.0 : 710.0, high));
  const Value r = reduced.r + low;
  reduced.r_low = ((reduced.r - r) + low) + reduced.r_low;
  reduced.r = r;
  return exponential(reduced);
}

Value expm1(const Value& x) {
  const bool single = x.type() == f32;
  const Reduced reduced = reduce(within(single ? -30.0 : -60.0, single ? 89.0 : 710.0, x));
  const Value& r = reduced.r;
  const Value p = fma(r * r, second_order(r), r);
  const Value y = scaled(fma(p, reduced.power, reduced.power - 1.0), reduced);
  return select(x == 0.0, x, y);  // the sign of zero
}

Value exp2(const Value& x) {
  const Format& format = format_of(x);
  const Value clamped = within(-format.exponent_limit, format.exponent_limit + 1, x);
  const Value rounded = clamped + format.round;
  const Value rest = clamped - (rounded - format.round);  // exact
  const Value r = rest * format.ln2_high;
  return exponential(with_power(r, fma(rest, format.ln2_low, fma(rest, format.ln2_high, -r)), rounded));
}

/// exp(|x|)/2, which is finite wherever sinh and cosh are.
Value cosh(const Value& x) {
  const Value half = exponential(reduce(within(0.0, x.type() == f32 ? 89.5 : 710.5, abs(x)), 1));
  return half + 0.25 / half;
}

Value sinh(const Value& x) {
  const bool single = x.type() == f32;
  const Value a = abs(x);
  const Reduced reduced = reduce(within(0.0, single ? 89.5 : 710.5, a), 1);
  const Value& r = reduced.r;
  const Value p = fma(r * r, second_order(r), r);
  const Value half = scaled(fma(p, reduced.power, reduced.power - 0.5), reduced);  // (exp(a) - 1) / 2
  const Value bounded = min(single ? 1e15 : 1e30, half);
  const Value y = half + bounded / (bounded + bounded + 1.0);
  return select(a < (single ? 1e-4 : 1e-8), x, copy_sign(y, x));
}

Value sigmoid(const Value& x) {
  const double most = x.type() == f32 ? 88.0 : 709.0;  // past which the result is a subnormal number, hence 0
  return 1.0 / (bounded_exp(within(-most, most, -x)) + 1.0);
}

namespace {

/// tanh(x), and 1 - |tanh(x)| = 2 sigmoid(-2 |x|) that it is made of; the latter holds from 0.55 on.
struct TanhParts {
  Value tanh, rest;
};
TanhParts tanh_parts(const Value& x) {
  const Value a = abs(x);
  const Value z = a * a;
  const Value p = x.type() == f32
                      ? polynomial(z, {-0.006617641153, 0.02131414113, -0.05391037868, 0.1333311979, -0.3333333207})
                      : polynomial(z, {-0.0000206132286312652584, 0.0000851307531601319979, -0.000234647220318285878,
                                       0.000588940905919396687, -0.00145566296313904115, 0.00359211054142286401,
                                       -0.00886323441197198978, 0.0218694884943713424, -0.0539682539674517458,
                                       0.133333333333327321, -0.333333333333333326});
  const Value near = fma(a * z, p, a);
  const Value bounded = min(x.type() == f32 ? 44.5 : 355.0, a);  // whose exponential is infinite
  const Value rest = 2.0 / (bounded_exp(bounded + bounded) + 1.0);
  return {copy_sign(select(a < 0.55, near, 1.0 - rest), x), rest};  // tanh(0.55) = 1/2
}

}  // namespace

Value tanh(const Value& x) { return tanh_parts(x).tanh; }

namespace {

/// The x from which down sigmoid(x) is near the least normal number.
double sigmoid_ends(const Value& x) { return x.type() == f32 ? -86.0 : -706.0; }

/// x exp(x), which is x sigmoid(x) below sigmoid_ends: exp(x) as two factors, neither of them subnormal.
Value by_halves(const Value& x) {
  const Value half = exp(x * 0.5);
  return half * max(x.type() == f32 ? -0x1p127 : -0x1p1023, x) * half;
}

constexpr double tanh_tail_below = -1.9;

}  // namespace

Value silu(const Value& x) { return select_rarely(x < sigmoid_ends(x), by_halves(x), x * sigmoid(x)); }

Value mish(const Value& x) {
  const Value usual = x * tanh(max(0.0, x) + log1p(exp(-abs(x))));
  return select_rarely(x < sigmoid_ends(x), by_halves(x), usual);
}

// Normally distributed arguments of gelu are in the tail too often for a rare part: in a third of the vectors.

Value one_plus_tanh(const Value& x) {
  const auto [y, rest] = tanh_parts(x);
  return select(x < tanh_tail_below, rest, y + 1.0);
}

Value tanh_gate(const Value& x, const Value& u) {
  const Value bounded = max(x.type() == f32 ? -0x1p100 : -0x1p1000, x);  // -infinity * 0 would be NaN
  return bounded * 0.5 * one_plus_tanh(u);
}

Value one_plus_tanh_slope(const Value& x) {
  const auto [y, rest] = tanh_parts(x);
  return select(x < tanh_tail_below, rest * (2.0 - rest), 1.0 - y * y);
}

Real silu(Real x) {
  const double share = 1 / (1 + std::exp(-x.v));
  return {share == 0 ? -0.0 : x.v * share, x.type};
}
Real mish(Real x) {
  const double share = std::tanh(std::log1p(std::exp(-std::abs(x.v))) + std::max(0.0, x.v));
  return {share == 0 ? -0.0 : x.v * share, x.type};
}
Real one_plus_tanh(Real x) { return {2 / (1 + std::exp(-2 * x.v)), x.type}; }
Real tanh_gate(Real x, Real u) {
  const double gate = one_plus_tanh(u).v;
  return {gate == 0 ? -0.0 : x.v * 0.5 * gate, x.type};
}
Real one_plus_tanh_slope(Real x) {
  const double cosh = std::cosh(x.v);
  return {1 / cosh / cosh, x.type};
}

Value copy_sign(const Value& x, const Value& sign) {
  const Format& format = format_of(x);
  const Value magnitude = bitcast(x, format.integer) & ~format.sign;
  return bitcast(magnitude | (bitcast(sign, format.integer) & format.sign), x.type());
}

}  // namespace gradus::scalar
