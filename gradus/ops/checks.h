/// Checks of composites. A composite checks its arguments itself, since its parts would name themselves in errors.
#pragma once
#include <cmath>
#include <concepts>
#include <limits>
#include <new>
#include <utility>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/ops/shape.h"

namespace gradus {

/// Returns `x`. InvalidArgument, opened by `op`, unless it has a float type.
inline const Tensor& require_floating(const Tensor& x, std::string_view op) {
  require(is_floating(x.dtype()), op, ": expected a float type, got ", x.spec(), "; cast it first");
  return x;
}

/// InvalidArgument unless `a` and `b` have the same float type.
inline void require_floating(const Tensor& a, const Tensor& b, std::string_view op) {
  require_floating(a, op);
  require(a.dtype() == b.dtype(), op, ": a is ", a.spec(), ", b is ", b.spec(), ": dtypes differ; cast one of them");
}

/// InvalidArgument, opened by `op`, unless x is f32 or f64 [..., m, n], or [..., n, n] if `square`.
inline void require_matrices(std::string_view op, const Spec& x, bool square) {
  require(is_floating(x.dtype) && !is_narrow(x.dtype), op, ": expected f32 or f64, got ", x, "; cast(x, f32) first");
  require(x.shape.rank() >= 2 && (!square || x.shape[-1] == x.shape[-2]), op, ": expected ",
          square ? "square matrices [..., n, n]" : "matrices [..., m, n]", ", got ", x);
}
/// require_matrices() of an op's only operand.
inline void check_operand_of_matrices(std::string_view op, Specs in, bool square) {
  require(in.size() == 1, op, ": expected 1 operand, got ", in.size());
  require_matrices(op, in[0], square);
}

/// The distance from 1 to the next number of f32 or f64.
inline double epsilon_of(DType dtype) {
  return dtype == f64 ? std::numeric_limits<double>::epsilon() : double{std::numeric_limits<float>::epsilon()};
}

/// Both tensors, broadcast to their common shape.
inline std::pair<Tensor, Tensor> broadcast_together(const Tensor& a, const Tensor& b, std::string_view op) {
  if (a.shape() == b.shape()) return {a, b};
  const Shape shape = broadcast_shape(a.shape(), b.shape(), op);
  return {broadcast_to(a, shape), broadcast_to(b, shape)};
}

/// OutOfRange, opened by `op`, unless the integer type `dtype` holds `most`. `most` is an extent, symbolic or not, or
/// an extent less one.
inline void require_held(std::string_view op, DType dtype, std::int64_t most) {
  if (!is_integer(dtype) || size_of(dtype) == 8) return;
  const std::int64_t largest = with_type(dtype, []<class T>(T) -> std::int64_t {
    if constexpr (std::integral<T> && sizeof(T) < 8) return std::numeric_limits<T>::max();
    return 0;
  });
  if (most >= 0 && most <= largest) return;
  const std::int64_t room = dimension::subtract(largest, most);
  if (room < 0)
    require_not_negative(room, text(op, ": ", dtype, " does not hold numbers to ", dimension::to_text(most),
                                    "; take a wider type, such as i32 or i64"));
}

/// An option as a number beside x. Options are doubles whatever dtype x has; beside integers a whole one counts as an
/// integer.
inline Scalar number_beside(const Tensor& x, double option) {
  const bool whole = !is_floating(x.dtype()) && std::trunc(option) == option && scalar::Literal(option).fits(i64);
  return whole ? Scalar(static_cast<std::int64_t>(option)) : Scalar(option);
}

/// n zeros on the host. OutOfRange for an absurdly large n, ResourceExhausted if there is no memory.
inline std::vector<double> host_numbers(std::string_view op, std::int64_t n) {
  require<OutOfRange>(n >= 0 && n < std::int64_t{1} << 40, op, ": ", n, " elements are too many");
  try {
    return std::vector<double>(static_cast<std::size_t>(n));
  } catch (const std::bad_alloc&) { throw ResourceExhausted(text(op, ": there is no room for ", n, " elements")); }
}

/// `axis` counted from the front. InvalidArgument if x is a scalar, OutOfRange if x has fewer axes.
inline int checked_axis(const Tensor& x, int axis, std::string_view op) {
  require(x.shape().rank() > 0, op, ": ", x.spec(), " has no axis");
  return x.shape().normalized(axis);
}

}  // namespace gradus
