/// Orders. They are stable: of equal elements (0 and -0 are equal) the first stays first. NaN stands last, ascending or
/// descending. Any dtype. Gradients go where the elements came from.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

enum class Direction { ascending, descending };

/// x in order along `axis`.
Tensor sort(const Tensor& x, int axis = -1, Direction direction = Direction::ascending);
/// The i32 indices along `axis` that put x in order.
Tensor argsort(const Tensor& x, int axis = -1, Direction direction = Direction::ascending);

struct TopK {
  Tensor values, indices;  // indices: i32
};
struct TopKOptions {
  int axis = -1;
  bool largest = true;  // else the smallest
};
/// The k largest elements along the last axis, the largest first; of equal ones the first first. InvalidArgument if
/// there are fewer than k.
TopK top_k(const Tensor& x, std::int64_t k);
TopK top_k(const Tensor& x, std::int64_t k, const TopKOptions& options);

enum class Side { left, right };
/// sorted_sequence: T[batch..., n] in ascending order, values: T[batch..., m] -> i32 [batch..., m]: before which
/// element each value would be put to keep the order; before (left) or behind (right) elements equal to it.
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, Side side = Side::left);

/// x: [rows..., n] -> i32 [rows..., count], count <= n: the indices of the first `count` elements of each row in order.
/// A primitive since where it reads depends on data. `count` is a dimension.
struct ArgSort {
  static constexpr auto name = "argsort";
  static constexpr auto library_kernel = "argsort";
  static constexpr auto takes = Takes::anything;
  bool descending = false;
  std::int64_t count = 0;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

}  // namespace gradus
