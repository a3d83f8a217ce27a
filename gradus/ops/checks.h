/// What composites check, since their parts would name themselves.
#pragma once
#include <utility>
#include "gradus/ops/shape.h"

namespace gradus {

/// `x`. InvalidArgument, opened by `op`, unless it has a float type.
inline const Tensor& require_floating(const Tensor& x, std::string_view op) {
  require(is_floating(x.dtype()), op, ": expected a float type, got ", x.spec(), "; cast it first");
  return x;
}

/// InvalidArgument unless `a` and `b` have the same float type.
inline void require_floating(const Tensor& a, const Tensor& b, std::string_view op) {
  require_floating(a, op);
  require(a.dtype() == b.dtype(), op, ": a is ", a.spec(), ", b is ", b.spec(), ": dtypes differ; cast one of them");
}

/// Both in the shape that they broadcast to.
inline std::pair<Tensor, Tensor> broadcast_together(const Tensor& a, const Tensor& b, std::string_view op) {
  if (a.shape() == b.shape()) return {a, b};
  const Shape shape = broadcast_shape(a.shape(), b.shape(), op);
  return {broadcast_to(a, shape), broadcast_to(b, shape)};
}

/// `axis` counted from the front. InvalidArgument of a scalar, OutOfRange past the axes.
inline int checked_axis(const Tensor& x, int axis, std::string_view op) {
  require(x.shape().rank() > 0, op, ": ", x.spec(), " has no axis");
  return x.shape().normalized(axis);
}

}  // namespace gradus
