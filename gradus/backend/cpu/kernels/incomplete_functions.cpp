/// By power series, continued fractions and asymptotic series, each in double and in truncated power series of the
/// parameters, so that a derivative is as sound as the value. Where the functions are steep, products of large powers
/// are taken together (the exponent is that of a ratio near 1), so that the error does not grow with the parameters.
#include "gradus/backend/cpu/kernels/incomplete_functions.h"
#include <algorithm>
#include <initializer_list>
#include <limits>
#include "gradus/backend/cpu/kernels/jet.h"
#include "gradus/scalar/formulas_special.h"
#include "gradus/scalar/temme_series.h"

namespace gradus::library {
namespace {

using std::erfc;
using std::exp;
using std::expm1;
using std::log;
using std::log1p;
using std::sqrt;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double euler_gamma = 0.57721566490153286;
constexpr int most_terms = 20000;
constexpr double large = 15;  // from here on Stirling's series is exact

/// log(gamma(x)) for x > 0; std::lgamma writes a global variable.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}
Jet log_gamma(const Jet& x) {
  const double at = x.value();
  return composed(x, [at](int k) {
    if (k == 0) return log_gamma(at);
    const scalar::Real slope = k == 1 ? scalar::digamma(scalar::Real(at, f64)) : scalar::polygamma(k - 1, {at, f64});
    return slope.v / factorial(k);
  });
}

/// log(gamma(x)) = (x - 1/2) log(x) - x + log(2 pi) / 2 + this.
template <class T> T stirling(const T& x) {
  const T r = 1.0 / x, z = r * r;
  return r * (1.0 / 12 +
              z * (-1.0 / 360 + z * (1.0 / 1260 + z * (-1.0 / 1680 + z * (1.0 / 1188 + z * (-691.0 / 360360))))));
}

/// log(gamma(1 + a)), exact in proportion also of small a.
template <class T> T log_gamma_1p(const T& a) {
  if (value_of(a) > 1e-4) return log_gamma(a + 1.0);
  return a * (-euler_gamma + a * (0.8224670334241132 + a * (-0.40068563438653143 + a * 0.27058080842778454)));
}

/// log(x / y)
template <class T, class U> T log_ratio(const T& x, const U& y) {
  const T off = (x - y) / y;
  return std::abs(value_of(off)) < 0.5 ? log1p(off) : T(log(x) - log(y));
}

// ---------------------------------------------------------------- gamma

/// x^a exp(-x) / gamma(a + 1)
template <class T> T gamma_density(const T& a, double x) {
  if (value_of(a) < large) return exp(a * std::log(x) - x - log_gamma_1p(a));
  const T off = (x - a) / a;
  const T log_of = std::abs(value_of(off)) < 0.5 ? T(log1p(off)) : T(std::log(x) - log(a));
  return exp(a * (log_of - off) - 0.5 * log(2 * M_PI * a) - stirling(a));
}

template <class T> T lower_by_series(const T& a, double x) {
  T term = a * 0.0 + 1.0, sum = term;
  for (int n = 1; n < most_terms; ++n) {
    term = term * x / (a + static_cast<double>(n));
    sum = sum + term;
    if (is_negligible(term, sum)) break;
  }
  return gamma_density(a, x) * sum;
}

/// Lentz's way through the continued fraction.
template <class T> T upper_by_fraction(const T& a, double x) {
  T b = x + 1.0 - a, c = a * 0.0 + 1e300, d = 1.0 / b, sum = d;
  for (int i = 1; i < most_terms; ++i) {
    const double n = i;
    const T numerator = -n * (n - a);
    b = b + 2.0;
    d = 1.0 / (numerator * d + b);
    c = b + numerator / c;
    const T next = sum * (c * d);
    const bool done = is_negligible(next - sum, next);
    sum = next;
    if (done) break;
  }
  return gamma_density(a, x) * a * sum;
}

/// For small a and x, where 1 - P would cancel.
template <class T> T upper_of_small(const T& a, double x) {
  const T exponent = a * std::log(x) - log_gamma_1p(a);
  double factor = 1;
  T sum = a * 0.0;
  for (int k = 1; k < 40; ++k) {
    factor *= -x / k;
    sum = sum + factor / (a + static_cast<double>(k));
  }
  return -expm1(exponent) - exp(exponent) * a * sum;
}

/// Temme 1979: uniform in x, for a > 2 10^4.
template <class T> T by_temme(const T& a, double x, bool upper) {
  const T off = (x - a) / a;
  if (std::abs(value_of(off)) > 0.45) return a * 0.0 + ((value_of(off) < 0) == upper ? 1.0 : 0.0);
  T g = a * 0.0;  // 2 (off - log(1 + off)) / off^2
  for (int k = 60; k >= 0; --k) g = 2.0 / (k + 2) - off * g;
  const T eta = off * sqrt(g);
  T sum = a * 0.0;
  for (int k = 3; k >= 0; --k) {
    T of_eta = a * 0.0;
    for (double c : temme_series[k]) of_eta = of_eta * eta + c;
    sum = sum / a + of_eta;
  }
  const T rest = exp(-0.5 * a * eta * eta) / sqrt(2 * M_PI * a) * sum;
  const T argument = eta * sqrt(0.5 * a);
  return upper ? T(0.5 * erfc(argument) + rest) : T(0.5 * erfc(-argument) - rest);
}

template <class T> T gamma_share(const T& a, double x, bool upper) {
  if (value_of(a) > 2e4) return by_temme(a, x, upper);
  if (x > value_of(a) + 1) {
    const T y = upper_by_fraction(a, x);
    return upper ? y : T(1.0 - y);
  }
  if (upper && x <= 1.1 && value_of(a) <= 1) return upper_of_small(a, x);
  const T y = lower_by_series(a, x);
  return upper ? T(1.0 - y) : y;
}

// ---------------------------------------------------------------- beta

/// log(gamma(a + b) / gamma(b)) for b >= large
template <class T> T log_gamma_rise(const T& a, const T& b) {
  const T sum = a + b;
  return (b - 0.5) * log1p(a / b) + a * (log(sum) - 1.0) + stirling(sum) - stirling(b);
}

/// log(p), of p + q = 1.
double log_of_share(double p, double q) { return p > 0.5 ? std::log1p(-q) : std::log(p); }

/// log(x^a y^b / beta(a, b)) with y = 1 - x
template <class T> T log_beta_density(const T& a, const T& b, double x, double y) {
  const double least = std::min(value_of(a), value_of(b));
  const T n = a + b;
  if (least >= large)
    return -a * log_ratio(T(a / n), x) - b * log_ratio(T(b / n), y) + 0.5 * log(a * b / (2 * M_PI * n)) + stirling(n) -
           stirling(a) - stirling(b);
  const T powers = a * log_of_share(x, y) + b * log_of_share(y, x);
  if (value_of(b) >= large) return powers + log_gamma_rise(a, b) - log_gamma(a);
  if (value_of(a) >= large) return powers + log_gamma_rise(b, a) - log_gamma(b);
  return powers + log_gamma(n) - log_gamma(a) - log_gamma(b);
}

/// Away from 0, for the ways through fractions.
template <class T> T nonzero(const T& x) { return std::abs(value_of(x)) < 1e-280 ? T(x + 1e-280) : x; }

/// For x < (a + 1) / (a + b + 2), where the continued fraction converges fast.
template <class T> T beta_by_fraction(const T& a, const T& b, double x, double y) {
  T c = a * 0.0 + 1.0, d = 1.0 / nonzero(T(1.0 - (a + b) * x / (a + 1.0))), sum = d;
  const auto advance = [&](const T& numerator) {
    d = 1.0 / nonzero(T(numerator * d + 1.0));
    c = nonzero(T(1.0 + numerator / c));
    return T(sum * (c * d));
  };
  for (int i = 1; i < most_terms; ++i) {
    const double m = i;
    sum = advance(m * (b - m) * x / ((a + (2 * m - 1)) * (a + 2 * m)));
    const T next = advance(-((a + m) * (a + b + m) * x / ((a + 2 * m) * (a + (2 * m + 1)))));
    const bool done = is_negligible(next - sum, next);
    sum = next;
    if (done) break;
  }
  return exp(log_beta_density(a, b, x, y)) / a * sum;
}

template <class T> T beta_share(const T& a, const T& b, double x) {
  if (x <= (value_of(a) + 1) / (value_of(a) + value_of(b) + 2)) return beta_by_fraction(a, b, x, 1 - x);
  return 1.0 - beta_by_fraction(b, a, 1 - x, x);
}

// ---------------------------------------------------------------- zeta

/// For q > 0: the first terms, and the Euler-Maclaurin formula for the rest.
template <class T> T zeta_of_positive(const T& s, double q) {
  constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,       -1.0 / 30,
                                  5.0 / 66,      -691.0 / 2730,   7.0 / 6,        -3617.0 / 510,
                                  43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};
  T sum = s * 0.0;
  double w = q;
  for (int k = 0; k < 16; ++k, w += 1) sum = sum + exp(-s * std::log(w));
  const T power = exp(-s * std::log(w));
  sum = sum + power * w / (s - 1.0) + 0.5 * power;
  T factor = s * power / w;  // s (s + 1) ... (s + 2j - 2) w^(-s - 2j + 1) / (2j)!, but for 1/2
  for (int j = 1; j <= 12; ++j) {
    const double even = 2 * j;
    factor = factor / ((even - 1) * even);
    const T term = factor * bernoulli[j - 1];
    sum = sum + term;
    if (is_negligible(term, sum)) break;
    factor = factor * (s + (even - 1)) * (s + even) / (w * w);
  }
  return sum;
}

double zeta_of_negative(double s, double q) {
  const double terms = std::ceil(-q), rest = q + terms;  // in (0, 1)
  const double mirrored = zeta_of_positive(s, 1 - rest) - zeta_of_positive(s, 1 - q);
  return zeta_of_positive(s, rest) + (std::fmod(s, 2) == 0 ? mirrored : -mirrored);
}

/// The derivative of order n, m of `f` by a and b.
double derivative(const Jet& y, int n, int m) { return y.at(n, m) * factorial(n) * factorial(m); }

}  // namespace

double incomplete_gamma(double a, double x, int n, bool upper) {
  if (!(a > 0) || !(x >= 0) || (a == infinity && x == infinity)) return nan;
  if (x == 0 || a == infinity) return n == 0 && upper ? 1 : 0;
  if (x == infinity) return n == 0 && !upper ? 1 : 0;
  if (n == 0) return gamma_share(a, x, upper);
  return derivative(gamma_share(Jet::first(a, n + 1, 1), x, upper), n, 0);
}

double incomplete_beta(double a, double b, double x, int n, int m) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || (a == infinity && b == infinity)) return nan;
  const bool whole = x == 1 || (b == infinity && x > 0);
  if (x == 0 || a == infinity || whole) return whole && (a != infinity || x == 1) && n == 0 && m == 0 ? 1 : 0;
  if (n == 0 && m == 0) return beta_share(a, b, x);
  return derivative(beta_share(Jet::first(a, n + 1, m + 1), Jet::second(b, n + 1, m + 1), x), n, m);
}

double hurwitz_zeta(double s, double q, int n) {
  if (!(s >= 1) || q != q) return nan;
  const bool whole = std::floor(s) == s;
  if (q <= 0 && std::floor(q) == q) return n == 0 && (s == 1 || (whole && std::fmod(s, 2) == 0)) ? infinity : nan;
  if (q < 0) return n == 0 && whole && s > 1 && s < infinity ? zeta_of_negative(s, q) : nan;
  if (s == 1) return n % 2 ? -infinity : infinity;
  if (q == infinity) return 0;
  if (s == infinity) return n > 0 || q > 1 ? 0 : q == 1 ? 1 : infinity;
  return n == 0 ? zeta_of_positive(s, q) : derivative(zeta_of_positive(Jet::first(s, n + 1, 1), q), n, 0);
}

}  // namespace gradus::library
