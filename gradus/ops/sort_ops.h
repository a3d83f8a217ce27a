/// The primitive of sorting.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: [rows..., n] -> i32 [rows..., count], count <= n: the indices of the first `count` elements of each row in order.
/// A primitive since data decides where it reads. `count` is a dimension, symbolic or not.
struct ArgSort {
  static constexpr auto name = "argsort";
  static constexpr auto library_kernel = "argsort";
  static constexpr auto takes = Takes::anything;
  bool descending = false;  // else ascending
  std::int64_t count = 0;   // number of indices per row
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

}  // namespace gradus
