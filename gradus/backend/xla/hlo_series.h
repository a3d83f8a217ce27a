/// HloSeries: truncated power series in two variables whose coefficients are values of the text, f64 of one shape. A
/// formula or a loop on them gives the derivatives of its result, too, as backend/cpu/kernels/jet.h does for numbers.
#pragma once
#include <cmath>
#include <functional>
#include <vector>
#include "gradus/backend/xla/hlo_writer.h"

namespace gradus::xla {

inline double factorial(int n) { return std::tgamma(n + 1.0); }

/// sum of c[i, j] s^i t^j with i < rows, j < columns. A coefficient without a name is 0.
class HloSeries {
 public:
  HloSeries(HloWriter& out, const HloValue& value, int rows, int columns)
      : out_(&out), shape_(value.shape()), rows_(rows), columns_(columns) {
    c_.resize(static_cast<std::size_t>(rows * columns));
    c_[0] = value;
  }
  /// value + s, and value + t.
  static HloSeries first(HloWriter& out, const HloValue& value, int rows, int columns);
  static HloSeries second(HloWriter& out, const HloValue& value, int rows, int columns);
  /// A number, in the form of this one.
  HloSeries like(double number) const;
  HloSeries like(const HloValue& value) const { return {*out_, value, rows_, columns_}; }

  HloWriter& out() const { return *out_; }
  const HloValue& value() const { return c_[0]; }
  HloValue at(int i, int j) const { return dense(static_cast<std::size_t>(i * columns_ + j)); }
  /// All coefficients, for the carries of a loop; and back.
  HloValues all() const;
  HloSeries from(const HloValues& coefficients) const;

  /// f(x), where coefficient(k) is the derivative of order k at value(), over k!.
  HloSeries composed(const std::function<HloValue(int k)>& coefficient) const;

  friend HloSeries operator+(const HloSeries& a, const HloSeries& b);
  friend HloSeries operator-(const HloSeries& a);
  friend HloSeries operator*(const HloSeries& a, const HloSeries& b);
  friend HloSeries operator/(const HloSeries& a, const HloSeries& b);
  friend HloSeries operator-(const HloSeries& a, const HloSeries& b) { return a + -b; }
  friend HloSeries operator+(const HloSeries& a, double b) { return a + a.like(b); }
  friend HloSeries operator-(const HloSeries& a, double b) { return a + a.like(-b); }
  friend HloSeries operator*(const HloSeries& a, double b) { return a * a.like(b); }
  friend HloSeries operator/(const HloSeries& a, double b) { return a / a.like(b); }
  friend HloSeries operator+(double a, const HloSeries& b) { return b.like(a) + b; }
  friend HloSeries operator-(double a, const HloSeries& b) { return b.like(a) + -b; }
  friend HloSeries operator*(double a, const HloSeries& b) { return b.like(a) * b; }
  friend HloSeries operator/(double a, const HloSeries& b) { return b.like(a) / b; }

  /// Booleans: how the values compare.
  HloValue is(std::string_view how, double number) const;
  HloValue is(std::string_view how, const HloSeries& other) const;

 private:
  HloValue dense(std::size_t k) const;
  HloWriter* out_;
  Shape shape_;
  int rows_, columns_;
  HloValues c_;
};

HloSeries select(const HloValue& which, const HloSeries& a, const HloSeries& b);
HloSeries exp(const HloSeries& x);
HloSeries expm1(const HloSeries& x);
HloSeries log(const HloSeries& x);
HloSeries log1p(const HloSeries& x);
HloSeries sqrt(const HloSeries& x);
HloSeries erfc(const HloSeries& x);
/// log(gamma(x)) for x > 0.
HloSeries log_gamma(const HloSeries& x);
HloSeries abs_of_value(const HloSeries& x);

/// True where adding `term` to `sum` changed nothing that counts, in any coefficient.
HloValue is_negligible(const HloSeries& term, const HloSeries& sum);

}  // namespace gradus::xla
