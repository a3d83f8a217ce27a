/// Parts that the families of elementwise ops share: broadcasting of operands, and products in which a zero cotangent
/// stays zero.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/scalar/formulas.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {

/// The gradients of n inputs that have none.
inline Tensors none(int n) { return Tensors(static_cast<std::size_t>(n)); }
inline bool has_gradient(const Tensor& y) { return is_floating(y.dtype()); }

/// The type of a number in a formula, as it is recorded and as it is computed.
inline DType type_of(const scalar::Value& x) { return x.type(); }
inline DType type_of(const scalar::Real& x) { return x.type; }

inline void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  require(a.dtype() == b.dtype(), op, ": a is ", a.spec(), ", b is ", b.spec(), ": dtypes differ; cast one of them");
}

/// Applies a formula to two operands, broadcast to one shape. `name` opens errors.
template <class T> Tensor broadcasting(const T& op, const Tensor& a, const Tensor& b, std::string_view name = T::name) {
  check_same_dtype(name, a, b);
  if (a.shape() == b.shape()) return apply(op, a, b);
  const Shape shape = broadcast_shape(a.shape(), b.shape(), name);
  return apply(op, broadcast_to(a, shape), broadcast_to(b, shape));
}

template <class T>
Tensor broadcasting(const T& op, const NumberOrTensor& a, const NumberOrTensor& b, std::string_view name = T::name) {
  const auto [x, y] = side_by_side(name, a, b);
  return broadcasting(op, x, y, name);
}

/// Applies an op whose gradient takes several steps. For narrow floats, the op and its gradients of any order are
/// computed in f32 and rounded once each. The result has the bits of the formula on narrow floats.
template <class T> Tensor apply_wide(const T& op, const Tensor& x) {
  return in_computed_dtype(x, [&](const Tensor& wide) { return apply(op, wide); });
}
/// As apply_wide, after broadcasting to one shape.
template <class T>
Tensor broadcasting_wide(const T& op, const Tensor& a, const Tensor& b, std::string_view name = T::name) {
  check_same_dtype(name, a, b);
  return in_computed_dtype(a, b, [&](const Tensor& x, const Tensor& y) { return broadcasting(op, x, y, name); });
}
template <class T>
Tensor broadcasting_wide(const T& op, const NumberOrTensor& a, const NumberOrTensor& b,
                         std::string_view name = T::name) {
  const auto [x, y] = side_by_side(name, a, b);
  return broadcasting_wide(op, x, y, name);
}

/// cotangent * factor and cotangent / divisor, but 0 wherever the cotangent is exactly 0. So a masked branch stays
/// masked where the factor is infinite. Both are linear in the cotangent also for differentiation.
Tensor cotangent_times(const Tensor& cotangent, const Tensor& factor);
Tensor cotangent_over(const Tensor& cotangent, const Tensor& divisor);
/// x, on the way to something that is multiplied by `weight`, which broadcasts to x and has its dtype. Where the weight
/// is exactly 0 the gradient of x is 0, also if x or a value computed from it is infinite or NaN.
Tensor guard_zero_weight(const Tensor& x, const Tensor& weight);
/// The cotangent, but 0 where the weight is exactly 0 and the cotangent is not finite: the effect of guard_zero_weight
/// on gradients.
Tensor guarded_cotangent(const Tensor& cotangent, const Tensor& weight);
/// a * b, but 0 wherever one of them is exactly 0: the gradients of the two above, both of whose operands are
/// cotangents.
Tensor product_of_cotangents(const Tensor& a, const Tensor& b);
/// x - largest, where `largest` is the maximum of the row of x. 0 where x is the maximum, also where both are infinite.
Tensor minus_largest(const Tensor& x, const Tensor& largest);
/// NaN where y is NaN and dy is not 0, else 0: the gradient of an operand that a comparison did not choose for y.
Tensor nan_of_nan(const Tensor& y, const Tensor& dy);
/// softplus(x) - x * z, the crossentropy of the logit x and the probability z. At infinite x it is the limit: 0 where z
/// agrees.
Tensor sigmoid_crossentropy(const Tensor& x, const Tensor& z);
/// dy * (1 - y * y) for y = tanh(x), and dy * (y * (1 - y)) for y = sigmoid(x). Each is one op: recording three costs
/// more than computing them.
Tensor tanh_grad(const Tensor& y, const Tensor& dy);
Tensor sigmoid_grad(const Tensor& y, const Tensor& dy);

}  // namespace gradus
