/// Truncated power series in two variables: with them in place of a number, a formula or a loop gives the derivatives
/// of its result too, exactly. Where only some of the arguments are series, double works in the same text.
#pragma once
#include <array>
#include <cmath>
#include <span>

namespace gradus::library {

/// sum of c[i, j] s^i t^j with i < rows, j < columns.
class Jet {
 public:
  static constexpr int highest_order = 5;

  Jet(double value, int rows, int columns) : rows_(rows), columns_(columns) {
    c_.fill(0);
    c_[0] = value;
  }
  /// value + s, and value + t.
  static Jet first(double value, int rows, int columns) {
    Jet x(value, rows, columns);
    if (rows > 1) x.at(1, 0) = 1;
    return x;
  }
  static Jet second(double value, int rows, int columns) {
    Jet x(value, rows, columns);
    if (columns > 1) x.at(0, 1) = 1;
    return x;
  }

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int size() const { return rows_ * columns_; }
  double value() const { return c_[0]; }
  double& at(int i, int j) { return c_[static_cast<std::size_t>(i * columns_ + j)]; }
  double at(int i, int j) const { return c_[static_cast<std::size_t>(i * columns_ + j)]; }
  double operator[](int k) const { return c_[static_cast<std::size_t>(k)]; }

  Jet& operator+=(const Jet& b) {
    for (std::size_t k = 0; k < used(); ++k) c_[k] += b.c_[k];
    return *this;
  }
  Jet& operator+=(double b) {
    c_[0] += b;
    return *this;
  }
  Jet& operator*=(double b) {
    for (std::size_t k = 0; k < used(); ++k) c_[k] *= b;
    return *this;
  }
  friend Jet operator+(Jet a, const Jet& b) { return a += b; }
  friend Jet operator+(Jet a, double b) { return a += b; }
  friend Jet operator+(double a, Jet b) { return b += a; }
  friend Jet operator-(Jet a) { return a *= -1; }
  friend Jet operator-(const Jet& a, const Jet& b) { return a + -b; }
  friend Jet operator-(Jet a, double b) { return a += -b; }
  friend Jet operator-(double a, const Jet& b) { return -b + a; }
  friend Jet operator*(Jet a, double b) { return a *= b; }
  friend Jet operator*(double a, Jet b) { return b *= a; }
  friend Jet operator*(const Jet& a, const Jet& b) {
    Jet y(0, a.rows_, a.columns_);
    for (int i = 0; i < y.rows_; ++i)
      for (int j = 0; j < y.columns_; ++j)
        for (int k = 0; k <= i; ++k)
          for (int l = 0; l <= j; ++l) y.at(i, j) += a.at(k, l) * b.at(i - k, j - l);
    return y;
  }
  friend Jet operator/(const Jet& a, const Jet& b) {
    Jet y(0, a.rows_, a.columns_);
    for (int i = 0; i < y.rows_; ++i)
      for (int j = 0; j < y.columns_; ++j) {
        double rest = a.at(i, j);
        for (int k = 0; k <= i; ++k)
          for (int l = 0; l <= j; ++l)
            if (k + l > 0) rest -= b.at(k, l) * y.at(i - k, j - l);
        y.at(i, j) = rest / b.value();
      }
    return y;
  }
  friend Jet operator/(Jet a, double b) { return a *= 1 / b; }
  friend Jet operator/(double a, const Jet& b) { return Jet(a, b.rows_, b.columns_) / b; }

 private:
  std::size_t used() const { return static_cast<std::size_t>(size()); }
  int rows_, columns_;
  std::array<double, (highest_order + 1) * (highest_order + 1)> c_;
};

/// f(x), where coefficient(k) is the derivative of order k at x.value(), over k!.
Jet composed(const Jet& x, auto coefficient) {
  Jet step = x;
  step += -x.value();
  const int most = x.rows() + x.columns() - 2;
  Jet sum(coefficient(most), x.rows(), x.columns());
  for (int k = most - 1; k >= 0; --k) sum = sum * step + coefficient(k);
  return sum;
}

inline double factorial(int n) { return std::tgamma(n + 1.0); }

inline double value_of(double x) { return x; }
inline double value_of(const Jet& x) { return x.value(); }

inline Jet exp(const Jet& x) {
  const double y = std::exp(x.value());
  return composed(x, [&](int k) { return y / factorial(k); });
}
inline Jet expm1(const Jet& x) {
  const double y = std::exp(x.value()), less = std::expm1(x.value());
  return composed(x, [&](int k) { return k == 0 ? less : y / factorial(k); });
}
/// log(from + (x - from)): its derivatives are those at `from`.
inline Jet logarithm(const Jet& x, double value, double from) {
  return composed(x, [&](int k) { return k == 0 ? value : (k % 2 ? 1 : -1) / (k * std::pow(from, k)); });
}
inline Jet log(const Jet& x) { return logarithm(x, std::log(x.value()), x.value()); }
inline Jet log1p(const Jet& x) { return logarithm(x, std::log1p(x.value()), 1 + x.value()); }
inline Jet sqrt(const Jet& x) {
  const double root = std::sqrt(x.value());
  return composed(x, [&](int k) {
    double y = root;
    for (int i = 0; i < k; ++i) y *= (0.5 - i) / ((i + 1) * x.value());
    return y;
  });
}
/// Derivatives are Hermite's polynomials times the density.
inline Jet erfc(const Jet& x) {
  const double u = x.value(), density = -2 / std::sqrt(M_PI) * std::exp(-u * u);
  return composed(x, [&](int k) {
    if (k == 0) return std::erfc(u);
    double before = 0, hermite = 1;
    for (int i = 0; i < k - 1; ++i) {
      const double next = -2 * u * hermite - 2.0 * i * before;
      before = hermite;
      hermite = next;
    }
    return density * hermite / factorial(k);
  });
}

/// True if adding `term` to `sum` changed nothing that counts.
inline bool is_negligible(double term, double sum) { return !(std::abs(term) > 0x1p-54 * std::abs(sum)); }
inline bool is_negligible(const Jet& term, const Jet& sum) {
  for (int k = 0; k < sum.size(); ++k)
    if (!is_negligible(term[k], sum[k])) return false;
  return true;
}

}  // namespace gradus::library
