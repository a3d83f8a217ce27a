/// Modified Bessel functions of the first kind. Up to 8 they are power series, whose terms are all positive. Beyond,
/// they are polynomials in 16 / x - 1 for the orders 0 and 1, and the recurrence between orders. All in f64. The others
/// are in formulas_bessel_waves.cpp.
#include <cmath>
#include <numbers>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

constexpr double series_limit = 8;

/// I_n(x) for 0 <= x <= 8.
auto by_series(int n, const auto& x) {
  auto y = x * x * 0.25, sum = x * 0.0 + 1.0, lead = sum;
  for (int k = 30; k > 0; --k) sum = fma(sum * y, 1.0 / (static_cast<double>(k) * (k + n)), 1.0);
  for (int k = 1; k <= n; ++k) lead = lead * x * (0.5 / k);
  return sum * lead;
}

/// sqrt(x) exp(-x) I_0(x) and I_1(x) for x >= 8, t = 16 / x - 1: fitted at Chebyshev's points, relative error below
/// 1e-16.
Value far_0(const Value& t) {
  return polynomial(t,
                    {-7.0689385118187803e-11, -1.92167637249335e-11,   5.1819369712882837e-10,  1.467223665921439e-10,
                     -1.7789375042917173e-09, -5.5622019900803915e-10, 3.8811512539960669e-09,  1.4978808301870909e-09,
                     -6.1882650904973606e-09, -3.4857887470034955e-09, 7.5802213391527184e-09,  7.5406013788908337e-09,
                     -5.4685974495865999e-09, -1.3404241991980871e-08, -6.7297241119235482e-09, 7.5535164703558957e-09,
                     2.1545177650836005e-08,  3.9326024597031092e-08,  8.8722535112858406e-08,  2.9735984324791688e-07,
                     1.4838475473607391e-06,  1.1143033791556743e-05,  0.00013621607439232746,  0.003360551983667854,
                     0.4021765094450081});
}
Value far_1(const Value& t) {
  return polynomial(t,
                    {7.3479924417346633e-11,  1.7502497778701293e-11,  -5.3882859959235232e-10, -1.3422663200822213e-10,
                     1.8513716745511988e-09,  5.1464988260871399e-10,  -4.0477854037118584e-09, -1.4171698018664593e-09,
                     6.4870195719816896e-09,  3.4066361301967942e-09,  -8.0442312761665079e-09, -7.630751970065577e-09,
                     6.0408773421609879e-09,  1.4029693589852716e-08,  6.7157951280850173e-09,  -8.426622829598154e-09,
                     -2.3370596271118569e-08, -4.3129353699713561e-08, -1.0001323461066435e-07, -3.4838556090099371e-07,
                     -1.8349101134666435e-06, -1.5038547201176271e-05, -0.00021923576383430274, -0.0097495771932357284,
                     0.38939845902587233});
}

/// sqrt(x) exp(-x) I_n(x) for x >= 8.
Value far(int n, const Value& x) {
  const Value t = 16.0 / x - 1.0;
  Value below = far_0(t);
  if (n == 0) return below;
  Value at = far_1(t);
  for (int k = 1; k < n; ++k) {
    const Value next = below - at * ((2.0 * k) / x);
    below = at;
    at = next;
  }
  return at;
}

}  // namespace

Value bessel_i(int order, bool scaled, const Value& x) {
  if (x.type() != f64) return convert(bessel_i(order, scaled, convert(x, f64)), x.type());
  const Value a = abs(x), is_near = a <= series_limit;
  const Value near_x = min(a, series_limit), far_x = max(a, series_limit);
  const Value near_value = by_series(order, near_x), far_value = far(order, far_x) / sqrt(far_x);
  // exp(x) overflows a little before the function does: half of it, twice.
  const Value half = exp(far_x * 0.5);
  const Value size =
      scaled ? select(is_near, near_value * exp(-near_x), far_value)
             : select(is_near, near_value,
                      select(half == std::numeric_limits<double>::infinity(), half, far_value * half * half));
  const Value signed_size = order % 2 == 0 ? size : copy_sign(size, x);
  return select(x == x, signed_size, x);
}

/// In double by the series, scaled down where it overflows, or the recurrence from it down: libstdc++ has it.
Real bessel_i(int order, bool scaled, Real x) {
  const double a = std::abs(x.v);
  double value = 0;
  if (std::isnan(a)) value = a;
  else if (std::isinf(a)) value = scaled ? 0 : a;
  else if (a > 500) value = 1 / std::sqrt(2 * std::numbers::pi * a);
  else value = std::cyl_bessel_i(order, a) * (scaled ? std::exp(-a) : 1);
  if (a > 500 && std::isfinite(a)) {
    double term = 1, sum = 1;
    for (int k = 1; k < 20; ++k) {
      term *= -(4.0 * order * order - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * k * a);
      sum += term;
    }
    value *= sum;
    if (!scaled) value = value * std::exp(a / 2) * std::exp(a / 2);
  }
  return {order % 2 == 0 ? value : std::copysign(value, x.v), x.type};
}

}  // namespace gradus::scalar
