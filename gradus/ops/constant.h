/// Tensors from numbers. A number that a user gives outside of any trace is data: another number is no reason to
/// compile again. Numbers in rules and traces are structure: an op without operands.
#pragma once
#include <initializer_list>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail {
/// The dtype of a literal: f32 for double and float, the type's own otherwise.
template <Element T> constexpr DType literal_dtype = std::is_floating_point_v<T> ? f32 : dtype_of<T>();
/// The common dtype of two literals: their own if the types agree, f32 if one is floating.
template <Element A, Element B>
constexpr DType dtype_of_numbers = std::is_same_v<A, B>                       ? literal_dtype<A>
                                   : FloatingElement<A> || FloatingElement<B> ? f32
                                                                              : literal_dtype<std::common_type_t<A, B>>;
Tensor from_literals(std::span<const scalar::Literal> values, const Shape& shape, DType dtype);
Tensor from_bytes(const void* values, std::size_t count, const Spec& spec);
[[noreturn]] void fail_ragged(std::size_t row, std::size_t expected, std::size_t given);

/// The type of the numbers of R, a list or a list of lists; void if R is no such list.
template <class R> consteval auto type_of_numbers() {
  if constexpr (Element<R>) return std::type_identity<R>();
  else if constexpr (!std::ranges::input_range<R>) return std::type_identity<void>();
  else if constexpr (std::is_same_v<R, std::ranges::range_value_t<R>>) return std::type_identity<void>();  // a path
  else return type_of_numbers<std::ranges::range_value_t<R>>();
}
template <class R> using number_type_of = typename decltype(type_of_numbers<R>())::type;
template <class R>
concept NumberList = std::ranges::input_range<const R> && !std::is_void_v<number_type_of<R>>;
template <class R> consteval std::size_t depth_of() {
  if constexpr (std::ranges::input_range<R>) return 1 + depth_of<std::ranges::range_value_t<R>>();
  else return 0;
}

/// Appends the numbers of `list` in order. `sizes` of this depth and below are known unless they are negative.
template <class R> void add_numbers(const R& list, std::span<std::int64_t> sizes, std::vector<scalar::Literal>& all) {
  std::int64_t size = 0;
  for (const auto& each : list) {
    if constexpr (NumberList<std::ranges::range_value_t<const R>>) {
      const std::int64_t before = sizes[1];
      add_numbers(each, sizes.subspan(1), all);
      if (before >= 0 && sizes[1] != before)
        fail_ragged(static_cast<std::size_t>(size), static_cast<std::size_t>(before),
                    static_cast<std::size_t>(sizes[1]));
    } else {
      all.emplace_back(static_cast<std::ranges::range_value_t<const R>>(each));
    }
    ++size;
  }
  sizes[0] = size;
}
template <NumberList R> Tensor from_list(const R& list, std::optional<DType> dtype) {
  std::array<std::int64_t, depth_of<R>()> sizes;
  sizes.fill(-1);
  std::vector<scalar::Literal> all;
  add_numbers(list, sizes, all);
  Shape shape;
  for (const std::int64_t size : sizes) shape.push_back(std::max<std::int64_t>(size, 0));
  return from_literals(all, shape, dtype.value_or(literal_dtype<number_type_of<R>>));
}
}  // namespace detail

/// A scalar. The default dtype is f32 for double and float, i32 for int, the type's own otherwise. OutOfRange if the
/// dtype cannot hold the value.
template <Element T> Tensor constant(T value, std::optional<DType> dtype = {}) {
  const scalar::Literal literal(value);
  return detail::from_literals({&literal, 1}, {}, dtype.value_or(detail::literal_dtype<T>));
}
/// A tensor of shape [n], [rows, columns] or [n, rows, columns]. InvalidArgument if rows differ in length.
template <Element T> Tensor constant(std::initializer_list<T> values, std::optional<DType> dtype = {}) {
  return detail::from_list(values, dtype);
}
template <Element T>
Tensor constant(std::initializer_list<std::initializer_list<T>> rows, std::optional<DType> dtype = {}) {
  return detail::from_list(rows, dtype);
}
template <Element T>
Tensor constant(std::initializer_list<std::initializer_list<std::initializer_list<T>>> lists,
                std::optional<DType> dtype = {}) {
  return detail::from_list(lists, dtype);
}
/// A tensor from std::vector, std::array, std::span and other ranges of numbers, or from ranges of such ranges. double
/// gives f32, too, unless a dtype is named; from_values() keeps the dtype.
template <detail::NumberList R> Tensor constant(const R& values, std::optional<DType> dtype = {}) {
  return detail::from_list(values, dtype);
}
Tensor constant(char, std::optional<DType> = {}) = delete;         // tensors hold numbers: cast a char to one
Tensor constant(const char*, std::optional<DType> = {}) = delete;  // tensors hold numbers, no texts
Tensor constant(std::initializer_list<char>, std::optional<DType> = {}) = delete;  // no dtype for char: write numbers

/// A copy of `values`, row-major; the dtype is that of T. InvalidArgument if `shape` has another number of elements.
template <Element T> Tensor from_values(std::span<const T> values, const Shape& shape) {
  return detail::from_bytes(values.data(), values.size(), {dtype_of<T>(), shape});
}
/// Takes a vector. Unsigned integers of 16 bits and more must be given as std::span: a vector of them is usually a list
/// of counts or indices that is meant as i32 or i64.
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
template <OneOf<std::uint16_t, std::uint32_t, unsigned long, unsigned long long> T>
Tensor from_values(const std::vector<T>&,
                   const Shape&) = delete;  // a vector of i32 or i64; std::span if they are meant

/// A tensor of zeros.
Tensor zeros(const Shape& shape, DType dtype = f32);
/// A tensor of ones.
Tensor ones(const Shape& shape, DType dtype = f32);
/// A tensor with `value` everywhere. OutOfRange if the dtype cannot hold it.
Tensor full(const Shape& shape, Scalar value, DType dtype = f32);
/// Zeros in the shape and dtype of x.
Tensor zeros_like(const Tensor& x);
/// Ones in the shape and dtype of x.
Tensor ones_like(const Tensor& x);

namespace detail::inline rooms {

/// A tensor of `value`, as structure: for the constants of rules.
Tensor fill(const Shape& shape, scalar::Literal value, DType dtype);
/// fill() in the shape and dtype of x.
inline Tensor fill_like(const Tensor& x, scalar::Literal value) { return fill(x.shape(), value, x.dtype()); }
/// A user's bare number as a scalar of the dtype of x: data, or structure within a trace. A floating number beside
/// integers or booleans is an InvalidArgument that names cast. A number that the dtype cannot hold is an OutOfRange.
/// `op` opens the error.
Tensor scalar_like(const Tensor& x, Scalar value, std::string_view op);

}  // namespace detail::inline rooms

}  // namespace gradus
