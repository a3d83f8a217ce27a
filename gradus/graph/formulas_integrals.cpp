/// Special functions that are defined as integrals, in f64. Coefficients are those of Chebyshev's series, found in
/// numbers of 50 digits and written out in powers; their relative error is below 4e-16.
#include <cmath>
#include <complex>
#include <numbers>
#include "gradus/graph/formulas_parts.h"
#include "gradus/graph/formulas_special.h"

namespace gradus::scalar {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using std::numbers::pi;

/// Fresnel's integrals at |x|: up to `limit`, where pi x^2 / 2 = 8, by polynomials in t; beyond around 1/2, with the
/// sine and cosine of pi x^2 / 2 and auxiliary functions f and g, which fall steadily.
struct Fresnel {
  Value a, square;     // |x|, at most 1e17: beyond, the integrals are 1/2 to the last place
  Value is_near, t;    // x^4 mapped to [-1, 1]
  Value sine, cosine;  // of pi x^2 / 2
  Value f, g;
};

Value fresnel_f(const Value& t) {
  return polynomial(t,
                    {-1.6100456633531237e-10, 2.365361244059927e-10,  5.332651686897831e-10,   -7.684478593589122e-10,
                     -9.840678122416963e-10,  1.4420538924347602e-09, 6.752203810414888e-10,   -8.886315249612682e-10,
                     -1.2314803983867882e-09, 2.178881411189331e-09,  -2.8332128000692735e-09, 6.385205504443487e-09,
                     -1.5612022850752406e-08, 3.922753327253666e-08,  -1.0766320049329391e-07, 3.309147966494108e-07,
                     -1.1758681917273599e-06, 5.086596430682148e-06,  -2.9197515628330098e-05, 0.0002610792144976837,
                     -0.005220066283888285,   0.9944828885169322});
}
Value fresnel_g(const Value& t) {
  return polynomial(t,
                    {-3.899586407928412e-09,  5.4540838768838545e-09, 1.5691915263080478e-08,  -2.1718065491345294e-08,
                     -3.109489594738629e-08,  4.3164204250730045e-08, 3.209142076757804e-08,   -4.372150968989689e-08,
                     -2.874342353164829e-08,  4.180901911454943e-08,  -6.566179233502455e-09,  1.853507107562425e-08,
                     -6.978958704459254e-08,  1.4422359102340032e-07, -3.0936363824517763e-07, 7.312142624294378e-07,
                     -1.8690928900178638e-06, 5.258426369624007e-06,  -1.6751080385911722e-05, 6.295476938430547e-05,
                     -0.0002981821685579339,  0.0019993427430437475,  -0.024011697703357298,   0.9736026233813789});
}
Value fresnel_c(const Value& t) {
  return polynomial(
      t, {4.4635377697643504e-14, -1.4337521328035828e-12, 4.0229830410246757e-11, -9.847092207418113e-10,
          2.07211461211666e-08, -3.7004658650764216e-07, 5.5226530085447805e-06, -6.759751629480252e-05,
          0.0006628421637116843, -0.005051421983175448, 0.02871557957492651, -0.11472891909386765, 0.2923980745667828,
          -0.3893358665548052, 0.11297853612840902, 0.15082567102878539, 0.20688091899965366});
}

Fresnel fresnel(const Value& x) {
  const Value a = min(abs(x), 1e17), square = a * a, rest = fma(a, a, -square);
  // x^2 modulo 4, exactly.
  const Value high = fma(round_even(square * 0.25), -4.0, square), low = fma(round_even(rest * 0.25), -4.0, rest);
  const Value angle = (high + low) * (pi / 2);
  constexpr double limit = 16 / pi;  // of x^2
  const Value near = min(square, limit) * (1 / limit), far = limit / max(square, limit);
  const Value t = fma(far * far, 2.0, -1.0);
  const Value far_a = max(a, std::sqrt(limit));
  return {a,
          square,
          square <= limit,
          fma(near * near, 2.0, -1.0),
          sin(angle),
          cos(angle),
          fresnel_f(t) / (far_a * pi),
          fresnel_g(t) / (far_a * far_a * far_a * (pi * pi))};
}

Value fresnel_s(const Value& t) {
  return polynomial(
      t, {2.1154312966578637e-15, -7.242789658965658e-14, 2.1773100586176223e-12, -5.7379326902350236e-11,
          1.3081800954128384e-09, -2.5502819051617184e-08, 4.193253408749664e-07, -5.720104548533757e-06,
          6.344710055257602e-05, -0.0005580215505249517, 0.0037674128960912645, -0.018694556341411372,
          0.06411892793260046, -0.1384559843207391, 0.16129761461291262, -0.08181134950634607, 0.05482529503660073});
}

/// C(x) + i S(x) in double: by the power series, or the continued fraction of erfc.
std::complex<long double> fresnel_of(double x) {
  using Complex = std::complex<long double>;
  constexpr long double wide_pi = std::numbers::pi_v<long double>;
  const double a = std::abs(x);
  if (std::isnan(x)) return {x, x};
  if (a > 1e17) return {std::copysign(0.5, x), std::copysign(0.5, x)};
  const double square = a * a, rest = std::fma(a, a, -square);
  const long double z = wide_pi / 2 * square;
  Complex value;
  if (z < 6) {
    Complex term = a;
    for (int k = 0; k < 60; ++k) value += term / (2.0L * k + 1), term *= Complex(0, z / (k + 1));
  } else {
    const long double angle = wide_pi / 2 * (std::fmod(square, 4.0) + std::fmod(rest, 4.0));
    const Complex w = Complex(1, -1) * (std::sqrt(wide_pi) / 2 * a);
    Complex fraction = w;
    for (int k = 200; k > 0; --k) fraction = w + 0.5L * k / fraction;
    const Complex erfc = std::polar(1.0L, angle) / (std::sqrt(wide_pi) * fraction);
    value = Complex(0.5, 0.5) * (1.0L - erfc);
  }
  return x < 0 ? -value : value;
}

}  // namespace

Value fresnel_cos(const Value& given) {
  const Value x = convert(given, f64);
  const Fresnel of = fresnel(x);
  const Value y = select(of.is_near, of.a * fresnel_c(of.t), of.f * of.sine - of.g * of.cosine + 0.5);
  return select(given == given, convert(copy_sign(y, x), given.type()), given);
}

Real fresnel_cos(Real x) { return {static_cast<double>(fresnel_of(x.v).real()), x.type}; }

Value fresnel_sin(const Value& given) {
  const Value x = convert(given, f64);
  const Fresnel of = fresnel(x);
  const Value y = select(of.is_near, of.a * of.square * fresnel_s(of.t), 0.5 - of.f * of.cosine - of.g * of.sine);
  return select(given == given, convert(copy_sign(y, x), given.type()), given);
}

Real fresnel_sin(Real x) { return {static_cast<double>(fresnel_of(x.v).imag()), x.type}; }

}  // namespace gradus::scalar
