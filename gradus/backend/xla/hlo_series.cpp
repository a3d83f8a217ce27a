#include "gradus/backend/xla/hlo_series.h"
#include <cmath>
#include "gradus/backend/xla/formula_text.h"
#include "gradus/base/numbered.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::xla {
namespace {

/// A scalar formula of one f64.
template <class Function> HloValue formula_of(HloWriter& out, const HloValue& x, Function function) {
  scalar::Code code;
  const scalar::Value input(&code, code.add({.op = scalar::Opcode::input, .type = f64, .a = 0}));
  code.result = function(input).id();
  return write_formula(out, code, {x}, x.shape());
}

}  // namespace

HloSeries HloSeries::first(HloWriter& out, const HloValue& value, int rows, int columns) {
  HloSeries x(out, value, rows, columns);
  if (rows > 1) x.c_[gradus::at(columns)] = out.number(1, f64, value.shape());
  return x;
}
HloSeries HloSeries::second(HloWriter& out, const HloValue& value, int rows, int columns) {
  HloSeries x(out, value, rows, columns);
  if (columns > 1) x.c_[1] = out.number(1, f64, value.shape());
  return x;
}

HloSeries HloSeries::like(double number) const { return like(out_->number(number, f64, shape_)); }

HloValue HloSeries::dense(std::size_t k) const { return c_[k].name.empty() ? out_->number(0, f64, shape_) : c_[k]; }

HloValues HloSeries::all() const {
  HloValues values;
  for (std::size_t k = 0; k < c_.size(); ++k) values.push_back(dense(k));
  return values;
}
HloSeries HloSeries::from(const HloValues& coefficients) const {
  HloSeries x = *this;
  x.c_ = coefficients;
  return x;
}

HloSeries operator+(const HloSeries& a, const HloSeries& b) {
  HloSeries y = a;
  for (std::size_t k = 0; k < y.c_.size(); ++k) {
    if (b.c_[k].name.empty()) continue;
    y.c_[k] = a.c_[k].name.empty() ? b.c_[k] : a.out_->add(a.c_[k], b.c_[k]);
  }
  return y;
}
HloSeries operator-(const HloSeries& a) {
  HloSeries y = a;
  for (HloValue& c : y.c_)
    if (!c.name.empty()) c = a.out_->same("negate", {c});
  return y;
}

HloSeries operator*(const HloSeries& a, const HloSeries& b) {
  HloSeries y = a;
  const auto place = [&](int i, int j) { return gradus::at(i * a.columns_ + j); };
  for (int i = 0; i < a.rows_; ++i)
    for (int j = 0; j < a.columns_; ++j) {
      HloValue sum;
      for (int k = 0; k <= i; ++k)
        for (int l = 0; l <= j; ++l) {
          const HloValue &x = a.c_[place(k, l)], &z = b.c_[place(i - k, j - l)];
          if (x.name.empty() || z.name.empty()) continue;
          const HloValue product = a.out_->multiply(x, z);
          sum = sum.name.empty() ? product : a.out_->add(sum, product);
        }
      y.c_[place(i, j)] = sum;
    }
  return y;
}

HloSeries operator/(const HloSeries& a, const HloSeries& b) {
  HloSeries y = a;
  const auto place = [&](int i, int j) { return gradus::at(i * a.columns_ + j); };
  for (int i = 0; i < a.rows_; ++i)
    for (int j = 0; j < a.columns_; ++j) {
      HloValue rest = a.c_[place(i, j)];
      for (int k = 0; k <= i; ++k)
        for (int l = 0; l <= j; ++l) {
          const HloValue &x = b.c_[place(k, l)], &z = y.c_[place(i - k, j - l)];
          if (k + l == 0 || x.name.empty() || z.name.empty()) continue;
          const HloValue product = a.out_->multiply(x, z);
          rest = rest.name.empty() ? a.out_->same("negate", {product}) : a.out_->subtract(rest, product);
        }
      y.c_[place(i, j)] = rest.name.empty() ? rest : a.out_->divide(rest, b.value());
    }
  return y;
}

HloValue HloSeries::is(std::string_view how, double number) const { return is(how, like(number)); }
HloValue HloSeries::is(std::string_view how, const HloSeries& other) const {
  return out_->compare(how, value(), other.value());
}

HloSeries HloSeries::composed(const std::function<HloValue(int k)>& coefficient) const {
  HloSeries step = *this;
  step.c_[0] = {};
  const int most = rows_ + columns_ - 2;
  HloSeries sum = like(coefficient(most));
  for (int k = most - 1; k >= 0; --k) sum = sum * step + like(coefficient(k));
  return sum;
}

HloSeries select(const HloValue& which, const HloSeries& a, const HloSeries& b) {
  const HloValues x = a.all(), y = b.all();
  HloValues chosen;
  for (std::size_t k = 0; k < x.size(); ++k)
    chosen.push_back(x[k].name == y[k].name ? x[k] : a.out().select(which, x[k], y[k]));
  return a.from(chosen);
}

namespace {

HloValue times(const HloSeries& x, const HloValue& value, double number) {
  return number == 1 ? value : x.out().multiply(value, x.out().number(number, f64, value.shape()));
}

/// log(from + (x - from)): its derivatives are those at `from`.
HloSeries logarithm(const HloSeries& x, const HloValue& value, const HloValue& from) {
  HloWriter& out = x.out();
  return x.composed([&](int k) {
    if (k == 0) return value;
    HloValue power = from;
    for (int i = 1; i < k; ++i) power = out.multiply(power, from);
    return out.divide(out.number((k % 2 ? 1.0 : -1.0) / k, f64, value.shape()), power);
  });
}

}  // namespace

HloSeries exp(const HloSeries& x) {
  const HloValue y = x.out().same("exponential", {x.value()});
  return x.composed([&](int k) { return times(x, y, 1 / factorial(k)); });
}
HloSeries expm1(const HloSeries& x) {
  const HloValue y = x.out().same("exponential", {x.value()});
  const HloValue less = x.out().same("exponential_minus_one", {x.value()});
  return x.composed([&](int k) { return k == 0 ? less : times(x, y, 1 / factorial(k)); });
}
HloSeries log(const HloSeries& x) { return logarithm(x, x.out().same("log", {x.value()}), x.value()); }
HloSeries log1p(const HloSeries& x) {
  const HloValue one = x.out().number(1, f64, x.value().shape());
  return logarithm(x, x.out().same("log_plus_one", {x.value()}), x.out().add(one, x.value()));
}
HloSeries sqrt(const HloSeries& x) {
  HloWriter& out = x.out();
  const HloValue root = out.same("sqrt", {x.value()});
  return x.composed([&](int k) {
    HloValue y = root;
    for (int i = 0; i < k; ++i) y = out.divide(times(x, y, (0.5 - i) / (i + 1)), x.value());
    return y;
  });
}

/// Derivatives are Hermite's polynomials times the density.
HloSeries erfc(const HloSeries& x) {
  HloWriter& out = x.out();
  const HloValue& u = x.value();
  const HloValue y = formula_of(out, u, [](const scalar::Value& v) { return scalar::erfc(v); });
  const HloValue bell = out.same("exponential", {out.same("negate", {out.multiply(u, u)})});
  const HloValue density = times(x, bell, -2 / std::sqrt(M_PI));
  return x.composed([&](int k) {
    if (k == 0) return y;
    HloValue before = out.number(0, f64, u.shape()), hermite = out.number(1, f64, u.shape());
    for (int i = 0; i < k - 1; ++i) {
      const HloValue next = out.subtract(times(x, out.multiply(u, hermite), -2), times(x, before, 2.0 * i));
      before = hermite;
      hermite = next;
    }
    return times(x, out.multiply(density, hermite), 1 / factorial(k));
  });
}

HloSeries log_gamma(const HloSeries& x) {
  return x.composed([&](int k) {
    const HloValue slope = formula_of(x.out(), x.value(), [k](const scalar::Value& v) {
      return k == 0 ? scalar::lgamma(v) : k == 1 ? scalar::digamma(v) : scalar::polygamma(k - 1, v);
    });
    return times(x, slope, 1 / factorial(k));
  });
}

HloSeries abs_of_value(const HloSeries& x) { return x.like(x.out().same("abs", {x.value()})); }

HloValue is_negligible(const HloSeries& term, const HloSeries& sum) {
  HloWriter& out = term.out();
  const HloValues terms = term.all(), sums = sum.all();
  HloValue all;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const HloValue least = times(term, out.same("abs", {sums[k]}), 0x1p-54);
    const HloValue counts = out.negation(out.compare("GT", out.same("abs", {terms[k]}), least));
    all = k == 0 ? counts : out.both(all, counts);
  }
  return all;
}

}  // namespace gradus::xla
