/// Tensors from numbers. A number that a user gives outside of any trace is data: another one never compiles anew.
/// Those that rules and traces use are structure: an op without operands.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail {
/// double and float literals give f32, the others their own type.
template <Element T> constexpr DType literal_dtype = std::is_floating_point_v<T> ? f32 : dtype_of<T>();
Tensor from_literals(std::span<const scalar::Literal> values, const Shape& shape, DType dtype);
Tensor from_bytes(const void* values, std::size_t count, const Spec& spec);
[[noreturn]] void fail_ragged(std::size_t row, std::size_t expected, std::size_t given);
}  // namespace detail

/// A scalar: double and float give f32, int i32, the others their own dtype, unless one is named. OutOfRange if the
/// dtype cannot hold the value.
template <Element T> Tensor constant(T value, std::optional<DType> dtype = {}) {
  const scalar::Literal literal(value);
  return detail::from_literals({&literal, 1}, {}, dtype.value_or(detail::literal_dtype<T>));
}
/// [n]
template <Element T> Tensor constant(std::initializer_list<T> values, std::optional<DType> dtype = {}) {
  const std::vector<scalar::Literal> literals(values.begin(), values.end());
  return detail::from_literals(literals, {static_cast<std::int64_t>(values.size())},
                               dtype.value_or(detail::literal_dtype<T>));
}
/// [rows, columns]; InvalidArgument if rows differ in length.
template <Element T>
Tensor constant(std::initializer_list<std::initializer_list<T>> rows, std::optional<DType> dtype = {}) {
  const std::size_t columns = rows.size() ? rows.begin()->size() : 0;
  std::vector<scalar::Literal> literals;
  for (const auto& row : rows) {
    if (row.size() != columns) detail::fail_ragged(static_cast<std::size_t>(&row - rows.begin()), columns, row.size());
    literals.insert(literals.end(), row.begin(), row.end());
  }
  return detail::from_literals(literals, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)},
                               dtype.value_or(detail::literal_dtype<T>));
}

/// A copy of `values`, row-major; the dtype is that of T. InvalidArgument if `shape` has another number of elements.
template <Element T> Tensor from_values(std::span<const T> values, const Shape& shape) {
  return detail::from_bytes(values.data(), values.size(), {dtype_of<T>(), shape});
}
/// Unsigned integers of 16 bits and more come as spans alone: a vector of them is more often a list of counts or places
/// that is meant as i32 or i64.
template <Element T>
  requires(!OneOf<T, std::uint16_t, std::uint32_t, unsigned long, unsigned long long>)
Tensor from_values(const std::vector<T>& values, const Shape& shape) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<std::uint8_t> bytes(values.begin(), values.end());
    return detail::from_bytes(bytes.data(), bytes.size(), {boolean, shape});
  } else {
    return from_values(std::span<const T>(values), shape);
  }
}

Tensor zeros(const Shape& shape, DType dtype = f32);
Tensor ones(const Shape& shape, DType dtype = f32);
/// OutOfRange if the dtype cannot hold the value.
Tensor full(const Shape& shape, Scalar value, DType dtype = f32);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);

// For the rooms of the library.

/// `value` everywhere, as structure: what rules use for their constants.
Tensor fill(const Shape& shape, scalar::Literal value, DType dtype);
inline Tensor fill_like(const Tensor& x, scalar::Literal value) { return fill(x.shape(), value, x.dtype()); }
/// A user's bare number beside `x`, as a scalar of the dtype of x: data, or structure within a trace. A floating
/// number beside integers or booleans is an InvalidArgument that names cast, a number that the dtype cannot hold an
/// OutOfRange. `op` opens the error.
Tensor scalar_like(const Tensor& x, Scalar value, std::string_view op);

}  // namespace gradus
