/// The logarithm of the gamma function and its derivatives: for positive arguments by the recurrence and Stirling's
/// series, for negative ones by reflection. All in f64.
#include <numbers>
#include <vector>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

using std::numbers::pi;

/// sin(pi r) for |r| <= 1/2.
Value sine_of_pi(const Value& r) {
  return r * polynomial(r * r, {7.6947146574521840809e-7, -2.1903184213668203168e-5, 0.00046629968831037268329,
                                -0.0073704304786710383279, 0.082145886569882716348, -0.59926452931873764355,
                                2.5501640398772939227, -5.1677127800499695285, 3.1415926535897932377});
}

/// cot(pi x): infinite at integers.
Value cotangent_of_pi(const Value& x) {
  const Value r = x - round_even(x), a = abs(r);
  return copy_sign(sine_of_pi(0.5 - a) / sine_of_pi(a), r);
}

/// log(gamma(y)) for y in [0.75, 2.5]: (y - 1) (y - 2) times a polynomial in (y - k) / (y + k).
Value log_gamma_near_its_zeros(const Value& y) {
  const Value q =
      polynomial((y - 1.375) / (y + 1.375),
                 {-0.0402473934622239277, 0.0377998500265441152, -0.0258115302237475718, 0.025686773136875025,
                  -0.0330635810210176115, 0.0319606177839665131, -0.0376071867669598483, 0.0362855953600300348,
                  -0.0443134618694745331, 0.0424542091052910278, -0.0538831146049186438, 0.0511028703850846045,
                  -0.0687474326704752374, 0.0641316264538490451, -0.0950188116607585218, 0.0858550164578227028,
                  -0.154504866230450151,  0.128952924598021156,  -0.449072678505374866,  0.502422488495269436});
  return (y - 1.0) * (y - 2.0) * q;
}

/// x log(gamma) less its main part, as a polynomial in 1 / x^2 for x >= 6.5.
Value stirling_series(const Value& z) {
  return polynomial(z,
                    {0.00454308431549725893, -0.00186234121526217486, 0.0008409031881148641, -0.000595231288190921221,
                     0.000793650767401186197, -0.00277777777773967347, 0.0833333333333333243});
}

struct LogGamma {
  Value small;    // true if the argument lies below 0.75
  Value shifted;  // there log(gamma(u + 1))
  Value y;        // log(gamma(u)) anywhere
};

LogGamma log_gamma_of_positive(const Value& u) {
  const Value small = u < 0.75, large = u >= 6.5;
  Value y = select(small, u + 1.0, u), product = select(small, u, 1.0);
  for (int step = 0; step < 4; ++step) {
    const Value over = y > 2.5;
    y = select(over, y - 1.0, y);
    product = select(over, product * y, product);
  }
  const Value log_of = log(select(large, u, product));
  const Value shifted = log_gamma_near_its_zeros(y);
  const Value r = 1.0 / u;
  const Value stirling = (u - 0.5) * (log_of - 1.0) + fma(r, stirling_series(r * r), 0.41893853320467274178);
  return {small, shifted, select(large, stirling, select(small, shifted - log_of, shifted + log_of))};
}

/// psi(v) for v > 0; -infinity at 0.
Value digamma_of_positive(const Value& given) {
  // The sum of 1 / (v + k) as one fraction.
  Value v = given, numerator = select(given == given, Value(0.0), given), denominator = numerator + 1.0;
  for (int step = 0; step < 6; ++step) {
    const Value under = v < 6.0;
    numerator = select(under, fma(numerator, v, denominator), numerator);
    denominator = select(under, denominator * v, denominator);
    v = select(under, v + 1.0, v);
  }
  const Value r = 1.0 / v, z = r * r;
  const Value series =
      polynomial(z, {0.0500031792095398946, -0.0197992940563579279, 0.00754791086912387594, -0.00416632821421712206,
                     0.00396825173997857806, -0.00833333332632214476, 0.0833333333333258676});
  return (log(v) - fma(z, series, r * 0.5)) - numerator / denominator;
}

/// x^n for n >= 1
Value power(const Value& x, int n) {
  if (n == 1) return x;
  const Value half = power(x, n / 2), square = half * half;
  return n % 2 ? square * x : square;
}

/// The sum of (v + k)^-s over k = 0, 1 ... for v > 0: the first terms, and the Euler-Maclaurin formula for the rest.
Value hurwitz_zeta(int s, const Value& v) {
  // B(2j) / (2j)!
  constexpr double bernoulli[] = {1.0 / 12,
                                  -1.0 / 720,
                                  1.0 / 30240,
                                  -1.0 / 1209600,
                                  1.0 / 47900160,
                                  -5.2841901386874932e-10,
                                  1.3382536530684679e-11,
                                  -3.3896802963225828e-13};
  const int terms = 8 + 2 * s;
  Value sum = power(1.0 / v, s);
  for (int k = 1; k < terms; ++k) sum = sum + power(1.0 / (v + static_cast<double>(k)), s);
  const Value r = 1.0 / (v + static_cast<double>(terms)), z = r * r;
  double rising = s;  // s (s + 1) ... (s + 2j - 2)
  std::vector<double> coefficients;
  for (int j = 1; j <= 8; ++j) {
    coefficients.push_back(bernoulli[j - 1] * rising);
    rising *= (s + 2.0 * j - 1) * (s + 2.0 * j);
  }
  Value series = coefficients.back();
  for (int j = 6; j >= 0; --j) series = fma(z, series, coefficients[static_cast<std::size_t>(j)]);
  const Value rest = fma(r, fma(r, series, 0.5), 1.0 / (s - 1));
  return sum + power(r, s - 1) * rest;
}

/// The polynomial in c = cot(pi x) that is the derivative of cot(pi x) of order `order`, over (-pi)^order.
std::vector<double> cotangent_derivative(int order) {
  std::vector<double> p{0, 1};  // ascending powers
  for (int k = 0; k < order; ++k) {
    std::vector<double> next(p.size() + 1, 0.0);
    for (std::size_t i = 1; i < p.size(); ++i) {
      next[i - 1] += static_cast<double>(i) * p[i];
      next[i + 1] += static_cast<double>(i) * p[i];
    }
    p = std::move(next);
  }
  return p;
}

}  // namespace

Value lgamma(const Value& given) {
  const Value x = convert(given, f64), u = abs(x);
  const LogGamma positive = log_gamma_of_positive(u);
  // gamma(u) gamma(-u) = -pi / (u sin(pi u)); below 0.75 the logarithms of u cancel.
  const Value sine = abs(sine_of_pi(u - round_even(u)));
  const Value area = select(positive.small, sine, sine * u) * (1 / pi);
  const Value other = select(positive.small, positive.shifted, positive.y);
  const Value reflected = select(area == 0.0, infinity, -log(area) - other);
  const Value y = select(x < 0.0, reflected, positive.y);
  return convert(select(u < infinity, y, u), given.type());
}

Value digamma(const Value& given) {
  const Value x = convert(given, f64);
  const Value below = x < 0.0;
  const Value positive = digamma_of_positive(select(below, 1.0 - x, x));
  const Value reflected = select(round_even(x) == x, nan, fma(cotangent_of_pi(x), -pi, positive));
  const Value y = select(x == 0.0, -1.0 / x, select(below, reflected, positive));
  return convert(y, given.type());
}

Value polygamma(int order, const Value& given) {
  const Value x = convert(given, f64);
  const Value below = x < 0.0;
  double factorial = 1, pi_power = pi;
  for (int k = 1; k <= order; ++k) factorial *= k, pi_power *= pi;
  const double sign = order % 2 ? 1 : -1;
  const Value positive = hurwitz_zeta(order + 1, select(below, 1.0 - x, x)) * (sign * factorial);
  const std::vector<double> p = cotangent_derivative(order);
  const Value c = cotangent_of_pi(x);
  Value derivative = p.back();
  for (std::size_t i = p.size() - 1; i-- > 0;) derivative = fma(derivative, c, p[i]);
  // psi_m(x) = (-1)^m psi_m(1 - x) - pi^(m+1) (-1)^m p(c)
  const Value reflected = fma(derivative, sign * pi_power, -sign * positive);
  const Value at_pole = round_even(x) == x;
  const Value y = select(below, select(at_pole, order % 2 ? infinity : nan, reflected), positive);
  return convert(y, given.type());
}

namespace {

/// The oracle's: the recurrence up to 40, and three terms of the series.
long double digamma_of(long double x) {
  if (x <= 0 && std::floor(x) == x) return x == 0 ? -1 / x : nan;
  if (x < 0) {
    const long double r = x - std::floor(x + 0.5L);
    return digamma_of(1 - x) - std::numbers::pi_v<long double> / std::tan(std::numbers::pi_v<long double> * r);
  }
  long double sum = 0;
  for (; x < 40; x += 1) sum += 1 / x;
  const long double z = 1 / (x * x);
  return std::log(x) - 0.5L / x - z * (1 / 12.0L - z * (1 / 120.0L - z * (1 / 252.0L - z / 240))) - sum;
}

/// -psi_m(x) / m! * (-1)^m as the sum of (x + k)^-s over all k; x may be negative.
long double zeta_of(int s, long double x) {
  long double sum = 0;
  for (; x < 60; x += 1) sum += std::pow(x, -static_cast<long double>(s));
  const long double r = 1 / x, first = std::pow(x, 1 - static_cast<long double>(s));
  const long double n = s;
  return sum + first * (1 / (n - 1) + r / 2 +
                        r * r * n *
                            (1 / 12.0L - r * r * (n + 1) * (n + 2) *
                                             (1 / 720.0L - r * r * (n + 3) * (n + 4) *
                                                               (1 / 30240.0L - r * r * (n + 5) * (n + 6) / 1209600))));
}

}  // namespace

Real digamma(Real x) {
  if (std::isinf(x.v)) return {x.v > 0 ? x.v : nan, x.type};
  return {static_cast<double>(digamma_of(x.v)), x.type};
}

Real polygamma(int order, Real x) {
  if (std::isinf(x.v)) return {x.v > 0 ? 0 : nan, x.type};
  if (x.v < 0 && std::floor(x.v) == x.v) return {order % 2 ? infinity : nan, x.type};
  if (std::isnan(x.v)) return x;
  return {static_cast<double>((order % 2 ? 1 : -1) * std::tgamma(order + 1.0L) * zeta_of(order + 1, x.v)), x.type};
}

}  // namespace gradus::scalar
