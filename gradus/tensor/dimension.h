/// Dimensions. A non-negative number is an extent. any_size in a user's spec means "not known when tracing". While a
/// function is traced, such a dimension is a symbol: a number below any_size that names a polynomial of symbols with
/// integer coefficients, such as 784*s0. A value that is no polynomial, such as a half rounded down, is a factor of its
/// own (derived_dimension.h). Equal polynomials are the same number, so shapes compare by value.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gradus {

/// A dimension not known when tracing.
inline constexpr std::int64_t any_size = -1;

namespace dimension {

/// True for a polynomial of symbols.
constexpr bool is_symbolic(std::int64_t d) { return d < any_size; }

/// The k-th symbol of a trace.
std::int64_t symbol(int k);
/// a + b.
std::int64_t add(std::int64_t a, std::int64_t b);
/// a - b.
std::int64_t subtract(std::int64_t a, std::int64_t b);
/// a * b. InvalidArgument if extents multiply past 2^63 - 1.
std::int64_t multiply(std::int64_t a, std::int64_t b);
/// a / b if b divides a without remainder for every value of the symbols; else empty.
std::optional<std::int64_t> divide(std::int64_t a, std::int64_t b);

/// The extent, given the values of the symbols.
std::int64_t evaluate(std::int64_t d, std::span<const std::int64_t> symbols);
/// One more than the highest symbol in `d`; 0 for an extent.
int symbols_in(std::int64_t d);

/// A dimension as text: "64", "s0", "784*s0", "s0*s1+2"; any_size is "?".
std::string to_text(std::int64_t d);
/// The dimension of such a text.
std::int64_t from_text(std::string_view text);

}  // namespace dimension
}  // namespace gradus
