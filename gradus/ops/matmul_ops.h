/// The primitive of matrix products.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// The primitive of matrix products. Operands have equal batch dimensions, or one of them has none and serves every
/// batch. A transposed operand is stored with its last two dimensions exchanged. k = 0 gives zeros.
struct Matmul {
  static constexpr auto name = "matmul";
  static constexpr auto library_kernel = "matmul";
  bool transpose_a = false;  // a is stored with its last two dimensions exchanged
  bool transpose_b = false;  // b is stored with its last two dimensions exchanged
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

}  // namespace gradus
