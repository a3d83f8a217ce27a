/// Ops that rearrange without computing: views, which their readers walk in place, and reshape, which is free. The
/// public functions are in shape.h; these structs are for passes that look through them.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: T[..., 1 or n, ...] -> T[shape]; missing leading dimensions count as 1.
struct Broadcast {
  static constexpr auto name = "broadcast";
  static constexpr auto takes = Takes::anything;
  Shape shape = {};
  Spec infer(Specs in) const;
  View view(const Shape& in, const Shape& out) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// Permutes dimensions. Dimension i of the result is the input's dimension that stands order[i] before the last: order
/// [0,1] exchanges the dimensions of a matrix, order [1,0] leaves them. Counted so, a new leading dimension changes no
/// number.
struct Transpose {
  static constexpr auto name = "transpose";
  static constexpr auto takes = Takes::anything;
  Shape order = {};
  Spec infer(Specs in) const;
  View view(const Shape& in, const Shape& out) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// The box of `size` elements that starts at `begin`, one number per dimension.
struct Slice {
  static constexpr auto name = "slice";
  static constexpr auto takes = Takes::anything;
  Shape begin = {};
  Shape size = {};
  Spec infer(Specs in) const;
  View view(const Shape& in, const Shape& out) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// Walks backwards the dimensions whose bit is set; bit 0 is the last dimension.
struct Reverse {
  static constexpr auto name = "reverse";
  static constexpr auto takes = Takes::anything;
  int dimensions = 0;
  Spec infer(Specs in) const;
  View view(const Shape& in, const Shape& out) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// `shape` with n as its first dimension.
Shape with_leading(std::int64_t n, Shape shape);

/// The same elements in the same order under another shape. (The layer is called Reshape.)
struct ReshapeOp {
  static constexpr auto name = "reshape";
  static constexpr auto takes = Takes::anything;
  Shape shape = {};
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

}  // namespace gradus
