/// Incomplete gamma and beta functions and Hurwitz's zeta, as backend/cpu/kernels/incomplete_functions.cpp has them and
/// says why: all elements go through all ways, and each takes the one that is its own. Loops end when the last is done.
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include "gradus/backend/xla/hlo_series.h"
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/incomplete_ops.h"
#include "gradus/scalar/temme_series.h"

namespace gradus::xla {
namespace {

using Series = HloSeries;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double euler_gamma = 0.57721566490153286;
constexpr double most_terms = 20000;
constexpr double large = 15;  // from here on Stirling's series is exact

// ---------------------------------------------------------------- loops

/// Series that change until an element is done: next(n, now) gives them for n = 1, 2 ..., and whether that was the
/// last time. Elements that `are_done` do not change.
struct Advanced {
  std::vector<Series> now;
  HloValue is_last;
};
std::vector<Series> until_done(const std::vector<Series>& first, const HloValue& are_done,
                               const std::function<Advanced(const Series& n, const std::vector<Series>& now)>& next) {
  HloWriter& out = first[0].out();
  const auto unpacked = [&](const HloValues& state) {
    std::vector<Series> series;
    std::size_t place = 2;
    for (const Series& s : first) {
      const std::size_t size = s.all().size();
      series.push_back(s.from(HloValues(state.begin() + static_cast<std::ptrdiff_t>(place),
                                        state.begin() + static_cast<std::ptrdiff_t>(place + size))));
      place += size;
    }
    return series;
  };
  HloValues start{out.number(1, f64), are_done};
  for (const Series& s : first)
    for (const HloValue& c : s.all()) start.push_back(c);
  const HloValues end = out.while_loop(
      start,
      [&](const HloValues& state) {
        const Shape all = counted(0, are_done.rank());
        const HloValue done = out.reduce("and", state[1], out.constant(boolean, 1), all);
        return out.both(out.negation(done), out.compare("LT", state[0], out.number(most_terms, f64)));
      },
      [&](const HloValues& state) {
        const std::vector<Series> now = unpacked(state);
        const Series n = now[0].like(out.broadcast(state[0], are_done.shape()));
        const Advanced advanced = next(n, now);
        HloValues after{out.add(state[0], out.number(1, f64)), out.either(state[1], advanced.is_last)};
        for (std::size_t k = 0; k < now.size(); ++k)
          for (const HloValue& c : select(state[1], now[k], advanced.now[k]).all()) after.push_back(c);
        return after;
      });
  return unpacked(end);
}

// ---------------------------------------------------------------- gamma

/// log(gamma(x)) = (x - 1/2) log(x) - x + log(2 pi) / 2 + this.
Series stirling(const Series& x) {
  const Series r = 1.0 / x, z = r * r;
  return r * (1.0 / 12 +
              z * (-1.0 / 360 + z * (1.0 / 1260 + z * (-1.0 / 1680 + z * (1.0 / 1188 + z * (-691.0 / 360360))))));
}

/// log(gamma(1 + a)), exact in proportion also of small a.
Series log_gamma_1p(const Series& a) {
  const Series small =
      a * (-euler_gamma + a * (0.8224670334241132 + a * (-0.40068563438653143 + a * 0.27058080842778454)));
  return select(a.is("GT", 1e-4), log_gamma(a + 1.0), small);
}

/// log(x / y), `off` being (x - y) / y.
Series log_ratio(const Series& off, const Series& x, const Series& y) {
  return select(abs_of_value(off).is("LT", 0.5), log1p(off), log(x) - log(y));
}

/// x^a exp(-x) / gamma(a + 1)
Series gamma_density(const Series& a, const Series& x) {
  const Series off = (x - a) / a;
  const Series near = exp(a * (log_ratio(off, x, a) - off) - 0.5 * log(a * (2 * M_PI)) - stirling(a));
  return select(a.is("LT", large), exp(a * log(x) - x - log_gamma_1p(a)), near);
}

Series lower_by_series(const Series& a, const Series& x, const HloValue& is_other) {
  const Series one = a.like(1);
  const auto end = until_done({one, one}, is_other, [&](const Series& n, const std::vector<Series>& now) {
    const Series term = now[0] * x / (a + n), sum = now[1] + term;
    return Advanced{{term, sum}, is_negligible(term, sum)};
  });
  return gamma_density(a, x) * end[1];
}

/// Lentz's way through the continued fraction.
Series upper_by_fraction(const Series& a, const Series& x, const HloValue& is_other) {
  const Series b = x + 1.0 - a, c = a.like(1e300), d = 1.0 / b;
  const auto end = until_done({b, c, d, d}, is_other, [&](const Series& n, const std::vector<Series>& now) {
    const Series numerator = -(n * (n - a)), next_b = now[0] + 2.0;
    const Series next_d = 1.0 / (numerator * now[2] + next_b), next_c = next_b + numerator / now[1];
    const Series next = now[3] * (next_c * next_d);
    return Advanced{{next_b, next_c, next_d, next}, is_negligible(next - now[3], next)};
  });
  return gamma_density(a, x) * a * end[3];
}

/// For small a and x, where 1 - P would cancel.
Series upper_of_small(const Series& a, const Series& x) {
  const Series exponent = a * log(x) - log_gamma_1p(a);
  Series factor = a.like(1), sum = a.like(0);
  for (int k = 1; k < 40; ++k) {
    factor = factor * x * (-1.0 / k);
    sum = sum + factor / (a + static_cast<double>(k));
  }
  return -expm1(exponent) - exp(exponent) * a * sum;
}

/// Temme 1979: uniform in x, for a > 2 10^4.
Series by_temme(const Series& a, const Series& x, bool upper) {
  const Series off = (x - a) / a;
  Series g = a.like(0);  // 2 (off - log(1 + off)) / off^2
  for (int k = 60; k >= 0; --k) g = 2.0 / (k + 2) - off * g;
  const Series eta = off * sqrt(g);
  Series sum = a.like(0);
  for (int k = 3; k >= 0; --k) {
    Series of_eta = a.like(0);
    for (const double c : temme_series[k]) of_eta = of_eta * eta + c;
    sum = sum / a + of_eta;
  }
  const Series rest = exp(-0.5 * a * eta * eta) / sqrt(2 * M_PI * a) * sum;
  const Series argument = eta * sqrt(0.5 * a);
  const Series near = upper ? 0.5 * erfc(argument) + rest : 0.5 * erfc(-argument) - rest;
  const Series far = select(off.is("LT", 0), a.like(upper ? 1 : 0), a.like(upper ? 0 : 1));
  return select(abs_of_value(off).is("GT", 0.45), far, near);
}

Series gamma_share(const Series& a, const Series& x, bool upper) {
  HloWriter& out = a.out();
  const HloValue is_temme = a.is("GT", 2e4), is_high = x.is("GT", a + 1.0);
  const HloValue goes_by_fraction = out.both(is_high, out.negation(is_temme));
  HloValue goes_by_series = out.both(out.negation(is_high), out.negation(is_temme));
  const Series fraction = upper_by_fraction(a, x, out.negation(goes_by_fraction));
  const Series series = lower_by_series(a, x, out.negation(goes_by_series));
  Series y = select(is_high, upper ? fraction : 1.0 - fraction, upper ? 1.0 - series : series);
  if (upper) {
    const HloValue is_small = out.both(out.both(x.is("LE", 1.1), a.is("LE", 1)), out.negation(is_high));
    y = select(is_small, upper_of_small(a, x), y);
  }
  return select(is_temme, by_temme(a, x, upper), y);
}

HloValue scaled(HloWriter& out, const HloValue& x, double factor) {
  return out.multiply(x, out.number(factor, f64, x.shape()));
}

HloValue write_igamma(const Site& s) {
  const Igamma& op = *s.v.op.as<Igamma>();
  HloWriter& out = s.out();
  const HloValue a = out.convert(s.in[0], f64), x = out.convert(s.in[1], f64);
  const auto number = [&](double v) { return out.number(v, f64, a.shape()); };
  const HloValue inf = number(infinity), zero = number(0);
  const HloValue a_inf = out.compare("EQ", a, inf), x_inf = out.compare("EQ", x, inf);
  const HloValue is_plain = out.both(out.compare("GT", a, zero), out.compare("GE", x, zero));
  const HloValue is_wrong = out.either(out.negation(is_plain), out.both(a_inf, x_inf));
  // Loops are for arguments whose value needs them.
  const HloValue is_none = out.either(out.compare("EQ", x, zero), a_inf);
  const HloValue is_known = out.either(is_wrong, out.either(is_none, x_inf));
  const HloValue safe_a = out.select(is_known, number(1), a), safe_x = out.select(is_known, number(1), x);
  const Series of_a = Series::first(out, safe_a, op.order + 1, 1);
  HloValue y = gamma_share(of_a, of_a.like(safe_x), op.upper).at(op.order, 0);
  y = scaled(out, y, factorial(op.order));
  y = out.select(x_inf, number(op.order == 0 && !op.upper ? 1 : 0), y);
  y = out.select(is_none, number(op.order == 0 && op.upper ? 1 : 0), y);
  y = out.select(is_wrong, number(std::numeric_limits<double>::quiet_NaN()), y);
  return out.convert(y, s.spec().dtype);
}

// ---------------------------------------------------------------- beta

/// log(gamma(a + b) / gamma(b)) for b >= large
Series log_gamma_rise(const Series& a, const Series& b) {
  const Series sum = a + b;
  return (b - 0.5) * log1p(a / b) + a * (log(sum) - 1.0) + stirling(sum) - stirling(b);
}

/// log(p), of p + q = 1.
Series log_of_share(const Series& p, const Series& q) { return select(p.is("GT", 0.5), log1p(-q), log(p)); }

/// log(x^a y^b / beta(a, b)) with y = 1 - x
Series log_beta_density(const Series& a, const Series& b, const Series& x, const Series& y) {
  HloWriter& out = a.out();
  const Series n = a + b;
  const auto off = [](const Series& p, const Series& q) { return (p - q) / q; };
  const Series share_a = a / n, share_b = b / n;
  const Series both = -(a * log_ratio(off(share_a, x), share_a, x)) - b * log_ratio(off(share_b, y), share_b, y) +
                      0.5 * log(a * b / (2 * M_PI * n)) + stirling(n) - stirling(a) - stirling(b);
  const Series powers = a * log_of_share(x, y) + b * log_of_share(y, x);
  const HloValue a_large = a.is("GE", large), b_large = b.is("GE", large);
  const Series neither = powers + log_gamma(n) - log_gamma(a) - log_gamma(b);
  const Series one = select(b_large, powers + log_gamma_rise(a, b) - log_gamma(a),
                            select(a_large, powers + log_gamma_rise(b, a) - log_gamma(b), neither));
  return select(out.both(a_large, b_large), both, one);
}

/// Away from 0, for the ways through fractions.
Series nonzero(const Series& x) { return select(abs_of_value(x).is("LT", 1e-280), x + 1e-280, x); }

/// For x < (a + 1) / (a + b + 2), where the continued fraction converges fast.
Series beta_by_fraction(const Series& a, const Series& b, const Series& x, const Series& y, const HloValue& is_other) {
  const Series c = a.like(1), d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
  const auto end = until_done({c, d, d}, is_other, [&](const Series& m, const std::vector<Series>& now) {
    Series next_c = now[0], next_d = now[1], sum = now[2];
    const auto advance = [&](const Series& numerator) {
      next_d = 1.0 / nonzero(numerator * next_d + 1.0);
      next_c = nonzero(1.0 + numerator / next_c);
      return sum * (next_c * next_d);
    };
    const Series twice = 2.0 * m;
    sum = advance(m * (b - m) * x / ((a + (twice - 1.0)) * (a + twice)));
    const Series next = advance(-((a + m) * (a + b + m) * x / ((a + twice) * (a + (twice + 1.0)))));
    return Advanced{{next_c, next_d, next}, is_negligible(next - sum, next)};
  });
  return exp(log_beta_density(a, b, x, y)) / a * end[2];
}

HloValue write_betainc(const Site& s) {
  const Betainc& op = *s.v.op.as<Betainc>();
  HloWriter& out = s.out();
  const HloValue a = out.convert(s.in[0], f64), b = out.convert(s.in[1], f64), x = out.convert(s.in[2], f64);
  const auto number = [&](double v) { return out.number(v, f64, a.shape()); };
  const auto is = [&](const HloValue& v, std::string_view how, double n) { return out.compare(how, v, number(n)); };
  const HloValue a_inf = is(a, "EQ", infinity), b_inf = is(b, "EQ", infinity);
  const HloValue is_plain =
      out.both(out.both(is(a, "GT", 0), is(b, "GT", 0)), out.both(is(x, "GE", 0), is(x, "LE", 1)));
  const HloValue is_wrong = out.either(out.negation(is_plain), out.both(a_inf, b_inf));
  const HloValue x_one = is(x, "EQ", 1), x_zero = is(x, "EQ", 0);
  const HloValue is_whole = out.either(x_one, out.both(b_inf, is(x, "GT", 0)));
  const HloValue is_end = out.either(out.either(x_zero, a_inf), is_whole);
  const HloValue is_known = out.either(is_wrong, is_end);
  const HloValue safe_a = out.select(is_known, number(1), a), safe_b = out.select(is_known, number(1), b);
  const HloValue safe_x = out.select(is_known, number(0.5), x);
  const int rows = op.order_a + 1, columns = op.order_b + 1;
  const Series of_a = Series::first(out, safe_a, rows, columns), of_b = Series::second(out, safe_b, rows, columns);
  const Series at = of_a.like(safe_x), rest = 1.0 - at;
  const HloValue is_low = at.is("LE", (of_a + 1.0) / (of_a + of_b + 2.0));
  const Series share = beta_by_fraction(select(is_low, of_a, of_b), select(is_low, of_b, of_a),
                                        select(is_low, at, rest), select(is_low, rest, at), is_known);
  HloValue y = select(is_low, share, 1.0 - share).at(op.order_a, op.order_b);
  y = scaled(out, y, factorial(op.order_a) * factorial(op.order_b));
  const HloValue is_one = out.both(is_whole, out.either(out.negation(a_inf), x_one));
  const double value = op.order_a == 0 && op.order_b == 0 ? 1 : 0;
  y = out.select(is_end, out.select(is_one, number(value), number(0)), y);
  y = out.select(is_wrong, number(std::numeric_limits<double>::quiet_NaN()), y);
  return out.convert(y, s.spec().dtype);
}

// ---------------------------------------------------------------- zeta

/// For q > 0: the first terms, and the Euler-Maclaurin formula for the rest.
Series zeta_of_positive(const Series& s, const Series& q) {
  constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,       -1.0 / 30,
                                  5.0 / 66,      -691.0 / 2730,   7.0 / 6,        -3617.0 / 510,
                                  43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};
  HloWriter& out = s.out();
  Series sum = s.like(0);
  for (int k = 0; k < 16; ++k) sum = sum + exp(-(s * log(q + static_cast<double>(k))));
  const Series w = q + 16.0, power = exp(-(s * log(w)));
  sum = sum + power * w / (s - 1.0) + 0.5 * power;
  Series factor = s * power / w;  // s (s + 1) ... (s + 2j - 2) w^(-s - 2j + 1) / (2j)!, but for 1/2
  HloValue done = out.constant(boolean, 0, s.value().shape());
  for (int j = 1; j <= 12; ++j) {
    const double even = 2 * j;
    factor = factor / ((even - 1) * even);
    const Series term = factor * bernoulli[j - 1], next = sum + term;
    sum = select(done, sum, next);
    done = out.either(done, is_negligible(term, next));
    factor = factor * (s + (even - 1)) * (s + even) / (w * w);
  }
  return sum;
}

HloValue write_zeta(const Site& site) {
  const int order = site.v.op.as<Zeta>()->order;
  HloWriter& out = site.out();
  const HloValue s = out.convert(site.in[0], f64), q = out.convert(site.in[1], f64);
  const auto number = [&](double v) { return out.number(v, f64, s.shape()); };
  const auto is = [&](const HloValue& v, std::string_view how, double n) { return out.compare(how, v, number(n)); };
  const auto choose = [&](const HloValue& which, double yes, double no) {
    return out.select(which, number(yes), number(no));
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const HloValue is_whole = out.compare("EQ", out.same("floor", {s}), s), s_one = is(s, "EQ", 1);
  const HloValue half = scaled(out, s, 0.5), is_even = out.compare("EQ", out.same("floor", {half}), half);
  const HloValue s_inf = is(s, "EQ", infinity), q_inf = is(q, "EQ", infinity);
  const HloValue is_pole = out.both(is(q, "LE", 0), out.compare("EQ", out.same("floor", {q}), q));
  const HloValue q_negative = is(q, "LT", 0);
  const HloValue is_wrong = out.either(out.negation(is(s, "GE", 1)), out.is_nan(q));
  const HloValue is_plain = out.both(out.both(is(s, "GT", 1), out.negation(s_inf)), out.negation(q_inf));

  const HloValue safe_s = out.select(is_plain, s, number(2));
  const Series of_s = Series::first(out, safe_s, order + 1, 1);
  const HloValue safe_q = out.select(out.both(is(q, "GT", 0), out.negation(q_inf)), q, number(1));
  HloValue y = scaled(out, zeta_of_positive(of_s, of_s.like(safe_q)).at(order, 0), factorial(order));
  y = out.select(s_inf,
                 order > 0 ? number(0) : out.select(is(q, "GT", 1), number(0), choose(is(q, "EQ", 1), 1, infinity)), y);
  y = out.select(q_inf, number(0), y);
  y = out.select(s_one, number(order % 2 ? -infinity : infinity), y);
  if (order == 0) {
    const HloValue is_below = out.both(q_negative, out.both(out.both(is_whole, is_plain), out.negation(is_pole)));
    const HloValue below = out.select(is_below, q, number(-0.5));
    const HloValue rest = out.add(below, out.same("ceil", {out.same("negate", {below})}));  // in (0, 1)
    const Series plain(out, safe_s, 1, 1);
    const auto at = [&](const HloValue& v) { return zeta_of_positive(plain, plain.like(v)).value(); };
    const HloValue mirrored = out.subtract(at(out.subtract(number(1), rest)), at(out.subtract(number(1), below)));
    const HloValue signed_ = out.select(is_even, mirrored, out.same("negate", {mirrored}));
    y = out.select(q_negative, out.select(is_below, out.add(at(rest), signed_), number(nan)), y);
    const HloValue is_infinite = out.either(s_one, out.both(is_whole, is_even));
    y = out.select(is_pole, choose(is_infinite, infinity, nan), y);
  } else {
    y = out.select(out.either(q_negative, is_pole), number(nan), y);
  }
  y = out.select(is_wrong, number(nan), y);
  return out.convert(y, site.spec().dtype);
}

constexpr std::array incomplete_table{Row{"igamma", write_igamma}, Row{"betainc", write_betainc},
                                      Row{"zeta", write_zeta}};

}  // namespace

std::span<const Row> incomplete_rows() { return incomplete_table; }

}  // namespace gradus::xla
