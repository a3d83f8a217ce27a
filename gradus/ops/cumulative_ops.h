/// Running sums: the primitive. A library kernel since each element needs the one before.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: T[outer, n, inner] -> the same shape. out[o, j, i] is the sum of x[o, 0 ... j, i], added one by one in ascending
/// order of j. T is a number type. `axis` counts from the end. `exclusive` leaves out x[o, j, i] itself, so the first
/// is 0. `reverse` runs from the end, in descending order of j.
struct Cumsum {
  static constexpr auto name = "cumsum";
  static constexpr auto library_kernel = "cumsum";
  int axis = -1;
  bool exclusive = false;
  bool reverse = false;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

}  // namespace gradus
