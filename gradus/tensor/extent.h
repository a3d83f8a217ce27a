/// Extent: the size of a dimension as x.size(axis) gives it. It is a number, or a symbol while a function is traced for
/// open sizes. Arithmetic with it is that of dimensions, so x.size(0) - 1 is right for both.
#pragma once
#include <compare>
#include <concepts>
#include <cstdint>
#include <ostream>
#include "gradus/tensor/derived_dimension.h"

namespace gradus {

/// The size of a dimension, and numbers computed from it by + - * / and %, which round down.
class Extent {
 public:
  /// A dimension, as a shape has it.
  explicit Extent(std::int64_t dimension) : dimension_(dimension) {}
  /// The number, as shapes take it; that of a symbol is negative.
  operator std::int64_t() const { return is_symbolic() ? dimension_ : dimension::evaluate(dimension_, {}); }
  /// True if the number depends on the sizes of a call.
  bool is_symbolic() const { return dimension::symbols_in(dimension_) > 0; }

  friend Extent operator+(Extent a, Extent b) { return Extent(dimension::add(a.dimension_, b.dimension_)); }
  friend Extent operator-(Extent a, Extent b) { return Extent(dimension::subtract(a.dimension_, b.dimension_)); }
  friend Extent operator*(Extent a, Extent b) { return Extent(dimension::multiply(a.dimension_, b.dimension_)); }
  friend Extent operator/(Extent a, Extent b) { return Extent(dimension::floor_divide(a.dimension_, b.dimension_)); }
  friend Extent operator%(Extent a, Extent b) { return Extent(dimension::modulo(a.dimension_, b.dimension_)); }
  template <std::integral N> friend Extent operator+(Extent a, N b) { return a + of(b); }
  template <std::integral N> friend Extent operator-(Extent a, N b) { return a - of(b); }
  template <std::integral N> friend Extent operator*(Extent a, N b) { return a * of(b); }
  template <std::integral N> friend Extent operator/(Extent a, N b) { return a / of(b); }
  template <std::integral N> friend Extent operator%(Extent a, N b) { return a % of(b); }
  template <std::integral N> friend Extent operator+(N a, Extent b) { return of(a) + b; }
  template <std::integral N> friend Extent operator-(N a, Extent b) { return of(a) - b; }
  template <std::integral N> friend Extent operator*(N a, Extent b) { return of(a) * b; }
  /// Comparisons. InvalidArgument if the answer depends on the sizes of a call.
  friend bool operator==(Extent a, Extent b) { return order(a, b) == 0; }
  friend std::strong_ordering operator<=>(Extent a, Extent b) { return order(a, b); }
  template <std::integral N> friend bool operator==(Extent a, N b) { return order(a, of(b)) == 0; }
  template <std::integral N> friend std::strong_ordering operator<=>(Extent a, N b) { return order(a, of(b)); }
  /// Prints "64", or "s0" for a symbol.
  friend std::ostream& operator<<(std::ostream& out, Extent extent);

 private:
  template <std::integral N> static Extent of(N n) {
    return Extent(dimension::of_number(static_cast<std::int64_t>(n)));
  }
  static std::strong_ordering order(Extent a, Extent b);
  std::int64_t dimension_;
};

}  // namespace gradus
