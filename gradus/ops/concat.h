/// Concatenation: the primitive behind concat, stack, pad and the gradients of slices.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// x_0, x_1, ...: T[outer, n_k, inner] -> T[outer, n_0 + n_1 + ..., inner], in order. T is any dtype, one for all
/// operands. There is at least one operand. `axis` counts from the end (-1 is the last). A primitive since a result
/// with several sources is no view of any of them.
struct Concat {
  static constexpr auto name = "concat";
  static constexpr auto takes = Takes::anything;
  static constexpr auto library_kernel = "concat";
  int axis = -1;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

}  // namespace gradus
