/// Special functions that are defined as integrals, in f64. Coefficients are those of Chebyshev's series, computed in
/// numbers of 50 digits and written out in powers; their relative error is below 4e-16.
#include <cmath>
#include <complex>
#include <numbers>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

using std::numbers::pi;

/// D(x) / x for x^2 = 8 (t + 1) up to 16, and 2 x D(x) for x^2 = 32 / (t + 1) from 16.
Value dawsn_near(const Value& t) {
  return polynomial(t, {4.659912354071363e-10, -1.8411483631122066e-09, 3.447850340546643e-09, -1.197779532652674e-08,
                        5.24900716635647e-08,  -1.7638201948657282e-07, 5.4546329335798e-07,   -1.6833155792971744e-06,
                        5.021190821559356e-06, -1.4279929190122447e-05, 3.882196796342243e-05, -0.00010083971991228998,
                        0.0002495993023883151, -0.0005872898111741446,  0.0013103794581058685, -0.0027650524433853263,
                        0.005501585507788549,  -0.010288733874699604,   0.01802319694830593,   -0.02946525010429149,
                        0.044786751825869456,  -0.06305464462942985,    0.08194859533103778,   -0.09808250266983563,
                        0.10808625359272574,   -0.11008414480023362,    0.10470230415581186,   -0.09479475974332541,
                        0.08391631505312504,   -0.0745921286034794,     0.06759907395335052});
}
Value dawsn_far(const Value& t) {
  return polynomial(t,
                    {-1.2267889122831039e-09, -9.67308318445983e-10,   8.982213617812515e-09,   7.1615083267922885e-09,
                     -3.0633836388952264e-08, -2.533720450675787e-08,  6.552539461090607e-08,   5.956137529313244e-08,
                     -9.920465157324617e-08,  -1.1150783270085279e-07, 1.0602412209027243e-07,  1.8470836010027687e-07,
                     -3.833549289329992e-08,  -2.4904615721346014e-07, -1.8250016657297077e-07, 7.214751297487946e-08,
                     3.298724052837812e-07,   5.942066611110148e-07,   1.193639571361268e-06,   3.475853148509465e-06,
                     1.5015355644606739e-05,  9.585187432846762e-05,   0.0009536645475217021,   0.01729214628962839,
                     1.0164219728980834});
}

/// (2 x D(x) - 1) / (t + 1) for x^2 = 32 / (t + 1) from 16.
Value dawsn_slope_far(const Value& t) {
  return polynomial(t, {1.9136802022360757e-10, -6.1823261445936015e-10, -1.3680855008971487e-9, 5.0262712710073486e-9,
                        4.2754177179164198e-9,  -1.9028030354701154e-8,  -7.4651031370764381e-9, 4.5139454001900279e-8,
                        7.4173480128505553e-9,  -7.7010284254267571e-8,  -3.3265174609022181e-9, 1.0449551898001975e-7,
                        1.6177811297532376e-9,  -1.2329016249565041e-7,  -1.5990568699834819e-8, 1.3180209231354584e-7,
                        6.4534139319432124e-8,  -1.0577647689783317e-7,  -1.4662538294399166e-7, -3.5304699083200713e-8,
                        1.0809702763402532e-7,  2.217056701100878e-7,    3.7242321697739321e-7,  8.2122116189018572e-7,
                        2.65463730902218e-6,    1.2360718180822373e-5,   8.3491155976645301e-5,  0.00087017339154654094,
                        0.016421972898083495});
}

constexpr double expint_near = 16;

/// Ei(x) - log(x) - gamma for 0 <= x <= 16: by its power series, whose terms are all positive.
Value expint_series(const Value& x) {
  double factor = 1;
  constexpr int terms = 66;
  double coefficients[terms] = {};
  for (int k = 1; k <= terms; ++k) factor /= k, coefficients[terms - k] = factor / k;
  return polynomial(x, coefficients) * x;
}

/// x exp(-x) Ei(x) for x = 32 / (t + 1) from 16.
Value expint_far(const Value& t) {
  return polynomial(t,
                    {-9.299749292069204e-10,  -6.6903007123953194e-09, 9.525558889663025e-09,   5.403957059291856e-08,
                     -4.5462671165575366e-08, -2.031211426406703e-07,  1.354145640010351e-07,   4.788264293658709e-07,
                     -2.8464460881968006e-07, -8.162702641811898e-07,  4.502292503787989e-07,   1.1263929015002031e-06,
                     -5.392853134192242e-07,  -1.4072243370170477e-06, 3.9675158971383897e-07,  1.701999109917673e-06,
                     2.6398712894163566e-07,  -1.7245576605284953e-06, -1.7099844221344821e-06, 2.37217314329562e-08,
                     1.936488653002173e-06,   3.603081138924583e-06,   6.536911982660431e-06,   1.649673598897901e-05,
                     6.144202098301082e-05,   0.00033267069455539077,  0.0026903330922315193,   0.03582049070347166,
                     1.033413564216241});
}

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

/// pi / 2 times x^2 modulo 4, for |x| up to 1e17: the remainder is exact.
Value fresnel_angle(const Value& a) {
  const Value square = a * a, rest = fma(a, a, -square);
  const Value high = fma(round_even(square * 0.25), -4.0, square), low = fma(round_even(rest * 0.25), -4.0, rest);
  return (high + low) * (pi / 2);
}

Fresnel fresnel(const Value& x) {
  const Value a = min(abs(x), 1e17), square = a * a, angle = fresnel_angle(a);
  constexpr double limit = 16 / pi;  // of x^2
  const Value near = min(square, limit) * (1 / limit), far = limit / max(square, limit);
  const Value t = fma(far * far, 2.0, -1.0);
  const Value far_a = max(a, std::sqrt(limit));
  return {a,
          square,
          square <= limit,
          fma(near * near, 2.0, -1.0),
          bounded_sin(angle),
          bounded_cos(angle),
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

/// Li2(1 - exp(-u)) for |u| <= log(2): Bernoulli's numbers over factorials.
Value debye(const Value& u) {
  const Value y = u * u;
  constexpr int terms = 9;
  const double zeta[terms] = {1.6449340668482264, 1.0823232337111382, 1.0173430619844491,
                              1.0040773561979444, 1.0009945751278181, 1.0002460865533080,
                              1.0000612481350587, 1.0000152822594086, 1.0000038172932650};  // of 2, 4, 6 ...
  Value sum = 0.0;
  for (int k = terms; k > 0; --k) {
    const double factor = 2 * zeta[k - 1] / (std::pow(2 * pi, 2 * k) * (2 * k + 1));
    sum = k == terms ? Value(factor) : fma(sum, y, (k - terms) % 2 == 0 ? factor : -factor);
  }
  return u + y * fma(u, sum, -0.25);
}

/// The derivative of order n >= 0 of log(x) / (1 - x): its power series around 1, beyond from
/// (x - 1) h' + n h = (log x)^(n), h the derivative of order n - 1 of log(x) / (x - 1).
Value spence_slope(int n, const Value& x) {
  const Value u = x - 1.0, is_near = abs(u) <= 0.375, small = min(max(u, -0.375), 0.375);
  const auto coefficient = [n](int j) {
    double product = (j + n) % 2 == 0 ? -1 : 1;
    for (int k = 1; k <= n; ++k) product *= j + k;
    return product / (j + n + 1);
  };
  int j = 42 + 4 * n;
  Value series = coefficient(j);
  while (j > 0) series = fma(series, small, coefficient(--j));
  const Value away = select(is_near, 1.0, u);
  Value h = log(x) / away, derivative = 1.0 / x;
  for (int k = 1; k <= n; ++k) {
    h = (derivative - h * static_cast<double>(k)) / away;
    derivative = derivative * static_cast<double>(-k) / x;
  }
  const Value y = select(is_near, series, select(x == infinity, 0.0, -h));
  return select(x == 0.0, n % 2 == 0 ? -infinity : infinity, y);
}

/// Spence's function by the powers of 1 - x, or x, up to 1/2.
long double spence_of(long double x) {
  constexpr long double wide_pi = std::numbers::pi_v<long double>;
  if (x == 0) return wide_pi * wide_pi / 6;
  if (x > 1.5L) return -spence_of(1 / x) - std::log(x) * std::log(x) / 2;
  if (x < 0.5L) return wide_pi * wide_pi / 6 - std::log(x) * std::log1p(-x) - spence_of(1 - x);
  long double sum = 0, power = 1;
  for (int k = 1; k < 80; ++k) power *= 1 - x, sum += power / (static_cast<long double>(k) * k);
  return sum;
}

}  // namespace

Value dawsn(const Value& given) {
  const Value x = convert(given, f64), a = abs(x), near = min(a, 4.0), far = max(a, 4.0);
  const Value y = select(a <= 4.0, near * dawsn_near(fma(near * near, 0.125, -1.0)),
                         dawsn_far(32.0 / (far * far) - 1.0) / (far * 2.0));
  return select(given == given, convert(copy_sign(y, x), given.type()), given);
}

Value dawsn_slope(const Value& given) {
  const Value a = abs(convert(given, f64)), near = min(a, 4.0), far = 4.0 / max(a, 4.0);
  const Value square = near * near, share = far * far * 2.0;  // x^2 = 32 / share
  const Value by_series = fma(square * -2.0, dawsn_near(fma(square, 0.125, -1.0)), 1.0);
  const Value y = select(a <= 4.0, by_series, -share * dawsn_slope_far(share - 1.0));
  return select(given == given, convert(y, given.type()), given);
}

Real dawsn_slope(Real x) {
  const long double a = std::abs(static_cast<long double>(x.v));
  if (std::isnan(x.v)) return x;
  if (a < 7)
    return {static_cast<double>(1 - 2 * a * static_cast<long double>(dawsn(Real(std::abs(x.v), f64)).v)), x.type};
  long double sum = 0, term = -1 / (2 * a * a);
  for (int k = 1; k < 30; ++k) sum += term, term *= (2 * k + 1) / (2 * a * a);
  return {static_cast<double>(sum), x.type};
}

/// In long double by the power series after exp(-x^2), all of whose terms are positive, or the asymptotic one.
Real dawsn(Real x) {
  const long double a = std::abs(static_cast<long double>(x.v));
  if (std::isnan(x.v)) return x;
  long double sum = 0, term = a;
  if (a < 7) {
    for (int k = 0; k < 250; ++k) sum += term / (2 * k + 1), term *= a * a / (k + 1);
    sum *= std::exp(-a * a);
  } else {
    term = 1 / (2 * a);
    for (int k = 0; k < 30; ++k) sum += term, term *= (2 * k + 1) / (2 * a * a);
  }
  return {std::copysign(static_cast<double>(sum), x.v), x.type};
}

Value expint(const Value& given) {
  const Value x = convert(given, f64), near = min(max(x, 0.0), expint_near), far = max(x, expint_near);
  // exp(x) overflows a little before the function does: half of it, twice.
  const Value half = exp(far * 0.5);
  const Value beyond = select(half == infinity, half, expint_far(2 * expint_near / far - 1.0) / far * half * half);
  const Value y = select(x <= expint_near, expint_series(near) + (log(near) + std::numbers::egamma), beyond);
  return select(given == given, select(x < 0.0, nan, convert(y, given.type())), given);
}

Real expint(Real x) {
  if (std::isnan(x.v) || x.v == infinity) return x;
  return {x.v < 0    ? nan
          : x.v == 0 ? -infinity
                     : static_cast<double>(std::expint(static_cast<long double>(x.v))),
          x.type};
}

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

/// Every double beyond 1e17 is a multiple of 4.
Value fresnel_slope(bool sine, const Value& given) {
  const Value x = convert(given, f64), angle = fresnel_angle(min(abs(x), 1e17));
  return convert(select(abs(x) < infinity, sine ? bounded_sin(angle) : bounded_cos(angle), nan), given.type());
}

Real fresnel_slope(bool sine, Real x) {
  const double square = x.v * x.v, rest = std::fma(x.v, x.v, -square);
  const long double angle = (std::fmod(square, 4.0) + std::fmod(rest, 4.0)) * std::numbers::pi_v<long double> / 2;
  if (std::abs(x.v) > 1e17) return {std::isfinite(x.v) ? (sine ? 0.0 : 1.0) : nan, x.type};
  return {static_cast<double>(sine ? std::sin(angle) : std::cos(angle)), x.type};
}

Value spence(int order, const Value& given) {
  const Value x = convert(given, f64);
  if (order > 0) return select(given == given, convert(spence_slope(order - 1, x), given.type()), given);
  const Value inverted = x > 2.0, y = select(inverted, 1.0 / x, x), small = y < 0.5;
  const Value log_y = log(y), log_rest = log1p(-min(y, 0.5));
  const Value series = debye(-select(small, log_rest, log_y));
  constexpr double at_0 = pi * pi / 6;
  const Value value = select(small, select(y == 0.0, at_0, at_0 - log_y * log_rest - series), series);
  const Value result = select(inverted, -value - log_y * log_y * 0.5, value);
  return select(given == given, convert(result, given.type()), given);
}

/// Derivatives in long double by the recurrence from the logarithm, or the power series near 1.
Real spence(int order, Real x) {
  const long double wide = x.v, u = wide - 1;
  if (!(x.v >= 0)) return {nan, x.type};
  if (order == 0) return {x.v == infinity ? -infinity : static_cast<double>(spence_of(x.v)), x.type};
  if (x.v == infinity) return {0, x.type};
  if (x.v == 0) return {order % 2 == 1 ? -infinity : infinity, x.type};
  long double value = 0;
  if (std::abs(u) < 0.5L) {
    for (int j = 80 + 10 * order; j >= 0; --j) {
      long double term = (j + order) % 2 == 0 ? 1 : -1;
      for (int k = 1; k < order; ++k) term *= j + k;
      value = value * u + term / (j + order);
    }
  } else {
    value = std::log(wide) / u;
    long double derivative = 1 / wide;
    for (int k = 1; k < order; ++k) value = (derivative - k * value) / u, derivative *= -k / wide;
    value = -value;
  }
  return {static_cast<double>(value), x.type};
}

}  // namespace gradus::scalar
