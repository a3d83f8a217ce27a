/// atan, atan2, asin and acos: the quotient of two sides, rotated by quarters of pi until it lies within tan(pi/8), and
/// an odd polynomial.
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

/// quarters * pi/4 + rest
struct Angle {
  Value quarters, rest;
};

Value times(const Value& x, double factor) { return x.is_literal() ? Value(x.literal().real() * factor) : x * factor; }

/// The angle of the point (across, up) of the first quadrant, not of its origin.
Angle angle_of(const Value& up, const Value& across) {
  constexpr double tan_pi_8 = 0.41421356237309504880, tan_3_pi_8 = 2.4142135623730950488;
  const Value steep = up > times(across, tan_3_pi_8), middle = up > times(across, tan_pi_8);
  const Value t = select(steep, times(across, -1), select(middle, up - across, up)) /
                  select(steep, up, select(middle, up + across, across));
  const Value z = t * t;
  const Value p =
      t.type() == f32
          ? polynomial(z, {-0.06093752984, 0.106005693, -0.1424456057, 0.1999853458, -0.3333331645})
          : polynomial(z, {-0.0180025213163146535, 0.0381562050440077481, -0.050431216797431363, 0.0584879109666599174,
                           -0.0666323695884634371, 0.0769207287149188986, -0.0909089853741946464, 0.111111108136757934,
                           -0.142857142808865927, 0.199999999999617102, -0.33333333333333233});
  const Value zero = t - t, one = zero + 1.0;  // NaN of NaN
  return {select(steep, one + one, select(middle, one, zero)), fma(t * z, p, t)};
}

Value sum_of(const Angle& angle) {
  const bool single = angle.rest.type() == f32;
  const double quarter = single ? 0.785398185253143310546875 : 0.785398163397448279;
  const double low = single ? -2.1855695000931214e-8 : 3.0616169978683829e-17;
  return fma(angle.quarters, quarter, fma(angle.quarters, low, angle.rest));
}

/// pi less the angle, where that holds.
Angle turned(const Value& where, const Angle& angle) {
  return {select(where, 4.0 - angle.quarters, angle.quarters), select(where, -angle.rest, angle.rest)};
}

/// The other side in the unit circle: sqrt(1 - a^2).
Value cathetus(const Value& a) { return sqrt((1.0 - a) * (a + 1.0)); }

}  // namespace

Value atan(const Value& x) { return copy_sign(sum_of(angle_of(abs(x), 1.0)), x); }

Value asin(const Value& x) {
  const Value a = abs(x);
  return copy_sign(sum_of(angle_of(a, cathetus(a))), x);
}

Value acos(const Value& x) {
  const Value a = abs(x);
  return sum_of(turned(x < 0.0, angle_of(cathetus(a), a)));
}

Value atan2(const Value& y, const Value& x) {
  const Format& format = format_of(y);
  const Value up = abs(y), across = abs(x), longer = max(up, across);
  // An infinite side counts as 1 and leaves nothing of a finite one; sides whose sum would overflow are scaled.
  const Value infinite = longer == infinity;
  const Value scale = select(longer > (y.type() == f32 ? 1e37 : 1e300), Value(0.25), up - up + 1.0);
  const auto bounded = [&](const Value& side) {
    return select(infinite, select(side == infinity, Value(1.0), side - side), side * scale);
  };
  const Value width = select(longer == 0.0, 1.0, bounded(across));
  const Angle angle = angle_of(bounded(up), width);
  const Value sum = copy_sign(sum_of(turned(bitcast(x, format.integer) < 0, angle)), y);
  return select((x == x) & (y == y), sum, x + y);
}

}  // namespace gradus::scalar
