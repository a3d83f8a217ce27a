/// Logarithms, functions composed of them, and pow: x = m 2^e with m near 1, and a polynomial in m - 1 or in (m - 1) /
/// (m + 1).
#include <numbers>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

/// log(1 + f) + low for 1 + f in [sqrt(1/2), sqrt(2)) and a small `low`, as f + the result.
Value log1p_less_argument(const Value& f, const Value& low) {
  const Value square = f * f;
  if (f.type() == f32) {
    const Value p = polynomial(f, {0.07329658086, -0.1165820764, 0.1163489516, -0.1239694767, 0.1425115983,
                                   -0.1666914112, 0.200006877, -0.2499998128, 0.3333333126});
    return fma(square, -0.5, fma(f * square, p, low));
  }
  // With s = f / (2 + f): log(1 + f) = 2s + s R(s^2) = f - f^2/2 + s (f^2/2 + R(s^2)).
  const Value s = f / (f + 2.0);
  const Value z = s * s;
  const Value r =
      z * polynomial(z, {0.14631308965516899, 0.153305033766416405, 0.181829263232209462, 0.222222106155265818,
                         0.285714286292199418, 0.399999999998921802, 0.666666666666666995});
  const Value half = square * 0.5;
  return fma(s, half + r, low) - half;
}

/// The special values of log: `y` for positive finite x.
Value finished_log(const Value& x, const Value& y) {
  const Value finite = select(x < infinity, y, x);  // infinity and NaN
  return select(x > 0.0, finite, select(x == 0.0, -infinity, select(x < 0.0, nan, x)));
}

struct Pair {
  Value high, low;
};
/// a + b + low, for |a| >= |b| or a = 0.
Pair fast_sum(const Value& a, const Value& b, const Value& low) {
  const Value sum = a + b;
  return {sum, ((a - sum) + b) + low};
}

/// log(x) of f64 to about 100 bits, for positive finite x.
Pair precise_log(const Value& x) {
  constexpr double two_thirds = 0.66666666666666662966, two_thirds_low = 3.700743415417188e-17;
  const auto [m, e] = split(x);
  const Value f = m - 1.0;
  const Value divisor = m + 1.0;
  const Value divisor_low = m - (divisor - 1.0);
  const Value s = f / divisor;
  const Value s_low = fma(-s, divisor_low, fma(-s, divisor, f)) / divisor;
  const Value z = s * s;
  const Value z_low = fma(s, s, -z) + (s + s) * s_low;
  // log(m) = s (2 + z (2/3 + z R(z)))
  const Value rest =
      z * z *
      polynomial(z, {0.12926820797045901, 0.132848747744923868, 0.153856078625014895, 0.18181807785836138,
                     0.222222222739880336, 0.285714285713319891, 0.400000000000000294});
  const Value third = z * two_thirds;
  const Value third_low = fma(z, two_thirds, -third) + (z * two_thirds_low + z_low * two_thirds);
  const Pair series = fast_sum(third, rest, third_low);
  const Pair factor = fast_sum(2.0, series.high, series.low);
  const Value log_m = s * factor.high;
  const Value log_m_low = fma(s, factor.high, -log_m) + (s * factor.low + s_low * factor.high);
  const Value log_e = e * format_f64.ln2_high;
  const Value log_e_low = fma(e, format_f64.ln2_high, -log_e) + e * format_f64.ln2_low;
  return fast_sum(log_e, log_m, log_e_low + log_m_low);
}

/// |x|^y where that is a finite power of a finite positive number, its limits elsewhere.
Value power_of_magnitude(const Value& x, const Value& y) {
  if (x.type() == f32) return convert(exp(convert(y, f64) * log(convert(x, f64))), f32);
  const Pair log_x = precise_log(x);
  const Value limit = select(x == 0.0, -infinity, select(x < infinity, log_x.high, infinity));
  const Value product = y * limit;
  const Value low = fma(y, log_x.high, -product) + y * log_x.low;
  return exp_of_sum(product, select(abs(product) < 1000.0, low, 0.0));
}

}  // namespace

Mantissa split(const Value& x) {
  const Format& format = format_of(x);
  const std::int64_t mask = (std::int64_t{1} << format.mantissa) - 1;
  // Biased, so that the shifted exponent is not negative.
  const Value shifted = bitcast(x, format.integer) + (format.one - format.sqrt_half);
  const Value m = bitcast((shifted & mask) + format.sqrt_half, x.type());
  const Value biased = shift_right_logical(shifted, format.mantissa);
  const std::int64_t bias = format.one >> format.mantissa;
  if (x.type() == f32) return {m, convert(biased - bias, f32)};
  // As the low bits of 2^52: few processors convert i64 to f64.
  constexpr std::int64_t two_to_52 = 0x4330000000000000;
  return {m, bitcast(biased | two_to_52, f64) - (4503599627370496.0 + static_cast<double>(bias))};
}

Value log(const Value& x) {
  const Format& format = format_of(x);
  const auto [m, e] = split(x);
  const Value f = m - 1.0;
  const Value y = fma(e, format.ln2_high, f + log1p_less_argument(f, e * format.ln2_low));
  return finished_log(x, y);
}

Value log2(const Value& x) {
  const auto [m, e] = split(x);
  const Value f = m - 1.0;
  const Value log_m = f + log1p_less_argument(f, 0.0);
  const bool single = x.type() == f32;
  const double high = single ? 1.44269502162933349609375 : 1.4426950408889634;
  return finished_log(x, fma(log_m, high, fma(log_m, single ? 1.9259629911266175e-8 : 2.0355273740931033e-17, e)));
}

Value log10(const Value& x) {
  const auto [m, e] = split(x);
  const Value f = m - 1.0;
  const Value log_m = f + log1p_less_argument(f, 0.0);
  const bool single = x.type() == f32;
  const double high = single ? 0.434294492006301879882812 : 0.43429448190325182;
  const double low = single ? -1.0103050052231684e-8 : 1.0983196502167651e-17;
  const double two = single ? 0.301030009984970092773438 : 0.30102999566398120;
  const double two_low = single ? -1.4320988897559699e-8 : -2.8037281277851704e-18;
  const Value small = fma(log_m, low, e * two_low);
  const Value large = log_m * high;  // its rounding error is kept
  return finished_log(x, fma(e, two, large + (fma(log_m, high, -large) + small)));
}

Value asinh(const Value& x) {
  const Value a = abs(x), square = a * a;
  const Value large = a > (x.type() == f32 ? 1e10 : 1e20);  // where 1 is lost, and the square is finite
  const Value y = log1p(select(large, a, a + square / (sqrt(square + 1.0) + 1.0)));
  return copy_sign(select(large, y + std::numbers::ln2, y), x);
}

Value acosh(const Value& x) {
  const Value t = x - 1.0;
  const Value large = x > (x.type() == f32 ? 1e10 : 1e20);
  const Value y = log1p(select(large, x, t + sqrt(t * (x + 1.0))));
  return select(x < 1.0, nan, select(large, y + std::numbers::ln2, y));
}

Value atanh(const Value& x) {
  const Value a = abs(x);
  return copy_sign(log1p((a + a) / (1.0 - a)) * 0.5, x);
}

Value log1p(const Value& x) {
  const Format& format = format_of(x);
  const Value u = x + 1.0;
  const Value one = u - x, back = u - 1.0;
  // u + lost = 1 + x exactly, whichever of the two is the larger.
  const Value lost = select(x > 1.0, 1.0 - one, x - back);
  const auto [m, e] = split(u);
  const Value f = m - 1.0;
  const Value y = fma(e, format.ln2_high, f + log1p_less_argument(f, fma(e, format.ln2_low, lost / u)));
  return select(x == 0.0, x, finished_log(u, y));
}

Value pow(const Value& x, const Value& y) {
  const Value magnitude = abs(x);
  const Value half = y * 0.5;
  const Value integral = floor(y) == y;
  const Value odd = integral & !(floor(half) == half);
  const Value power = select(magnitude == 1.0, 1.0, power_of_magnitude(magnitude, y));
  const Value sign = select(odd, x, power);  // of an odd power: that of x, be it -0
  Value result = copy_sign(power, sign);
  result = select((x < 0.0) & !integral & (magnitude < infinity), nan, result);
  result = select((x == x) & (y == y), result, x + y);
  return select((y == 0.0) | (x == 1.0), 1.0, result);
}

}  // namespace gradus::scalar
