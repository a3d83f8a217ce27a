/// The representation of symbolic dimensions; for the sources of dimensions alone. A factor of a term is a symbol, or a
/// derived one, which stands for a value that is no polynomial of others: a quotient rounded down, the larger of a
/// number and 0, a number of doublings.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gradus::dimension {

using Monomial = std::vector<int>;                    // factors, ascending, with repetition; empty: the constant term
using Polynomial = std::map<Monomial, std::int64_t>;  // no zero coefficients

/// Factors from this number on are derived ones.
inline constexpr int first_derived = 1 << 20;

struct Derived {
  enum class Kind {
    quotient,       // the largest whole number <= a / b
    positive_part,  // the larger of a and 0
    doublings,      // the least k with 2^k >= a
  };
  Kind kind;
  std::int64_t a, b;  // dimensions; b only for a quotient
  auto operator<=>(const Derived&) const = default;
};

Polynomial polynomial_of(std::int64_t d);
std::int64_t number_of(Polynomial p);
/// The number, if `p` is one.
std::optional<std::int64_t> constant_of(const Polynomial& p);

Derived derived(int factor);
std::int64_t derived_dimension(const Derived& what);

/// The product. InvalidArgument past 2^63 - 1.
std::int64_t multiply_extents(std::int64_t a, std::int64_t b);

}  // namespace gradus::dimension
