/// Shares are quotients of integrals over the logarithm, where integrands fall off on both sides; those of their
/// derivatives have powers of logarithms as factors. Gauss's rule of five points on short pieces.
#include "tests/reference/oracle_incomplete.h"
#include <cmath>
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace gradus::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
using Integrand = std::function<double(double s)>;

double integral(const Integrand& f, double from, double to, double longest) {
  static constexpr double places[] = {0, 0.53846931010568309, 0.90617984593866399};
  static constexpr double weights[] = {0.56888888888888889, 0.47862867049936647, 0.23692688505618909};
  if (!(to > from)) return 0;
  const int pieces = static_cast<int>((to - from) / longest) + 1;
  const double half = (to - from) / pieces / 2;
  long double sum = 0;
  for (int i = 0; i < pieces; ++i) {
    const double middle = from + (2 * i + 1) * half;
    sum += weights[0] * f(middle);
    for (int k = 1; k < 3; ++k) sum += weights[k] * (f(middle - half * places[k]) + f(middle + half * places[k]));
  }
  return static_cast<double>(sum * half);
}

double binomial(int n, int k) {
  double product = 1;
  for (int i = 1; i <= k; ++i) product = product * (n - k + i) / i;
  return product;
}

/// The derivative of orders n and m of a quotient, by those of numerator and denominator: from y d = n.
double of_quotient(const std::function<double(int, int)>& numerator, const std::function<double(int, int)>& denominator,
                   int n, int m) {
  std::vector<std::vector<double>> y(static_cast<std::size_t>(n) + 1,
                                     std::vector<double>(static_cast<std::size_t>(m) + 1));
  const auto at = [&](int i, int j) -> double& { return y[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]; };
  for (int i = 0; i <= n; ++i)
    for (int j = 0; j <= m; ++j) {
      double rest = numerator(i, j);
      for (int k = 0; k <= i; ++k)
        for (int l = 0; l <= j; ++l)
          if (k + l < i + j) rest -= binomial(i, k) * binomial(j, l) * at(k, l) * denominator(i - k, j - l);
      at(i, j) = rest / denominator(0, 0);
    }
  return at(n, m);
}

}  // namespace

double incomplete_gamma(double a, double x, int n, bool upper) {
  if (!(a > 0) || !(x >= 0) || (std::isinf(a) && std::isinf(x))) return nan;
  if (x == 0 || std::isinf(a)) return n == 0 && upper ? 1 : 0;
  if (std::isinf(x)) return n == 0 && !upper ? 1 : 0;
  const double most = a * std::log(a) - a, longest = 0.05 / std::max(1.0, std::sqrt(a));
  const double top = std::log(a + 60 + 12 * std::sqrt(a)), at = std::log(x);
  const double bottom = std::min(at, std::log(a)) - 50 / std::min(a, 25.0);
  const auto part = [&](int k, double from, double to) {
    return integral([&](double s) { return std::pow(s, k) * std::exp(a * s - std::exp(s) - most); }, from, to, longest);
  };
  return of_quotient([&](int k, int) { return upper ? part(k, at, std::max(top, at + 6)) : part(k, bottom, at); },
                     [&](int k, int) { return part(k, bottom, top); }, n, 0);
}

double incomplete_beta(double a, double b, double x, int n, int m) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || (std::isinf(a) && std::isinf(b))) return nan;
  if (x == 0 || (std::isinf(a) && x < 1)) return 0;
  if (x == 1 || std::isinf(b)) return n == 0 && m == 0 ? 1 : 0;
  const double longest = 0.05 / std::max(1.0, std::sqrt(a + b));
  const double bottom = -50 / std::min(a, 5.0) - 10, top = 50 / std::min(b, 5.0) + 10;
  const auto below = [&](int i, int j, double to) {
    return integral(
        [&](double s) {  // t = 1 / (1 + exp(-s))
          const double log_t = -std::log1p(std::exp(-s)), log_rest = -std::log1p(std::exp(s));
          return std::pow(log_t, i) * std::pow(log_rest, j) * std::exp(a * log_t + b * log_rest);
        },
        bottom, to, longest);
  };
  const double at = std::log(x) - std::log1p(-x);
  return of_quotient([&](int i, int j) { return below(i, j, at); }, [&](int i, int j) { return below(i, j, top); }, n,
                     m);
}

/// The sum up to 4000, and what follows by the integral and two corrections.
double hurwitz_zeta(double s, double q, int n) {
  if (!(s >= 1) || std::isnan(q)) return nan;
  const bool whole = std::floor(s) == s;
  if (q <= 0 && std::floor(q) == q) return n == 0 && (s == 1 || (whole && std::fmod(s, 2) == 0)) ? infinity : nan;
  if (q < 0 && (n > 0 || !whole || s == 1 || std::isinf(s))) return nan;
  if (s == 1) return n % 2 ? -infinity : infinity;
  if (std::isinf(q)) return 0;
  if (std::isinf(s)) return n > 0 || q > 1 ? 0 : q == 1 ? 1 : infinity;
  long double sum = 0, w = q;
  for (; w < 4000 + std::abs(q); w += 1)
    sum += std::pow(w, -static_cast<long double>(s)) * (n == 0 ? 1 : std::pow(-std::log(w), n));
  const long double power = std::pow(w, -static_cast<long double>(s)), slope = -std::log(w);
  long double of_integral = 0, factorial = 1;  // of w^(1-s) / (s-1)
  for (int k = 0; k <= n; ++k) {
    of_integral += binomial(n, k) * std::pow(slope, n - k) * (k % 2 ? -factorial : factorial) /
                   std::pow(static_cast<long double>(s) - 1, k + 1);
    factorial *= k + 1;
  }
  const long double last = n == 0 ? 0 : n * std::pow(slope, n - 1);
  return static_cast<double>(
      sum + power * (w * of_integral + std::pow(slope, n) / 2 + (s * std::pow(slope, n) + last) / (12 * w)));
}

}  // namespace gradus::reference
