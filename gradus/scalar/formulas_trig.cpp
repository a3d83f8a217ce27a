/// sin, cos and tan: x = n pi/2 + r with |r| <= pi/4. Arguments of f32 are reduced in f64, where the whole computation
/// is exact enough to round once. Arguments of f64 are reduced by pi/2 in three parts, which fma makes exact up to
/// 2^43.
#include "gradus/scalar/formulas_parts.h"

namespace gradus::scalar {
namespace {

constexpr double half_pi[] = {1.5707963267948965580, 6.1232339957367660359e-17, -1.4973849048591698e-33};
constexpr double bound = 8796093022208.0;  // 2^43

struct Quadrant {
  Value bits;    // n in its low bits
  Value r, low;  // r + low is the reduced argument
};

/// `wide` is f64. `precise` asks for the low part, else it is 0.
Quadrant reduce(const Value& wide, bool precise) {
  const Value x = min(bound, max(-bound, wide));
  const Value rounded = fma(x, 0.63661977236758134308, format_f64.round);
  const Value n = -(rounded - format_f64.round);
  const Value bits = bitcast(rounded, i64);
  const Value first = fma(n, half_pi[0], x);  // exact
  if (!precise) return {bits, fma(n, half_pi[1], first), 0.0};
  const Value second = n * half_pi[1];
  const Value second_low = fma(n, half_pi[1], -second);
  const Value r = first + second;
  const Value part = r - first;
  const Value lost = (first - (r - part)) + (second - part);
  return {bits, r, lost + fma(n, half_pi[2], second_low)};
}

struct SineCosine {
  Value sine, cosine;
};

/// For f32: relative error below 2^-35.
SineCosine short_kernels(const Value& r) {
  const Value z = r * r;
  const Value s = polynomial(
      z, {2.72493849762038517e-6, -0.000198400826703363396, 0.00833333186748369159, -0.166666666638379996, 1.0});
  const Value c = polynomial(z, {-2.73004993336850788e-7, 0.0000248005969058315514, -0.00138888876658035745,
                                 0.0416666666643061492, -0.5, 1.0});
  return {r * s, c};
}

SineCosine long_kernels(const Value& r, const Value& low) {
  const Value z = r * r;
  const Value s = polynomial(z, {1.59178609609323507e-10, -2.50511281361830451e-8, 2.75573160848556848e-6,
                                 -0.000198412698367247121, 0.00833333333333092633, -0.166666666666666646});
  const Value c = polynomial(z, {-1.13824636920178271e-11, 2.08761439348306302e-9, -2.75573172605866566e-7,
                                 0.0000248015872987443448, -0.00138888888888873833, 0.0416666666666666654});
  const Value half = z * 0.5;
  const Value near_one = 1.0 - half;
  const Value sine = r + fma(r * z, s, low * near_one);
  const Value cosine = near_one + (((1.0 - near_one) - half) + fma(z * z, c, -(r * low)));
  return {sine, cosine};
}

/// Sine and cosine of the reduced argument, f64, with the quadrant.
struct Circle {
  SineCosine at;
  Value bits;
};
Circle circle(const Value& x) {
  const bool precise = x.type() == f64;
  const Quadrant q = reduce(convert(x, f64), precise);
  return {precise ? long_kernels(q.r, q.low) : short_kernels(q.r), q.bits};
}

Value is_odd(const Value& bits) { return (bits & std::int64_t{1}) == std::int64_t{1}; }

/// y, negated in the quadrants whose second bit is set.
Value signed_by(const Value& bits, const Value& y) {
  return bitcast(bitcast(y, i64) ^ (shift_left(bits, 62) & format_f64.sign), f64);
}

/// The result in the type of x; NaN unless x is finite.
Value finished(const Value& x, const Value& y) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return select(abs(x) < infinity, convert(y, x.type()), std::numeric_limits<double>::quiet_NaN());
}

/// Odd functions are their argument near zero, -0 included.
Value odd_near_zero(const Value& x, const Value& y) { return select(abs(x) < 1e-9, x, y); }

}  // namespace

Value sin(const Value& x) {
  const Circle c = circle(x);
  const Value y = signed_by(c.bits, select(is_odd(c.bits), c.at.cosine, c.at.sine));
  return odd_near_zero(x, finished(x, y));
}

Value cos(const Value& x) {
  const Circle c = circle(x);
  const Value next = c.bits + std::int64_t{1};
  return finished(x, signed_by(next, select(is_odd(next), c.at.cosine, c.at.sine)));
}

Value tan(const Value& x) {
  const Circle c = circle(x);
  const Value odd = is_odd(c.bits);
  const Value y = select(odd, c.at.cosine, c.at.sine) / select(odd, -c.at.sine, c.at.cosine);
  return odd_near_zero(x, finished(x, y));
}

}  // namespace gradus::scalar
