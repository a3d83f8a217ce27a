/// Running sums: the primitive. A library kernel since each element needs the one before.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: T[outer, n, inner] -> the same shape. out[o, j, i] is the sum of x[o, 0 ... j, i], added in ascending order of j
/// in blocks of 2,048: the last sum of the block before, plus the sum of the block's own elements so far. T is a number
/// type. `axis` counts from the end. `exclusive` leaves out x[o, j, i] itself, so the first is 0. `reverse` runs from
/// the end, in descending order of j.
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

/// First-order linear recurrence. a, b: T[outer, n, inner] -> y of the same shape along `axis`, which counts from the
/// end: y[0] = b[0], y[t] = a[t] y[t-1] + b[t], in ascending order of t. The product and the sum are rounded once each.
/// a[0] is not read (with `reverse`, the last one). T is a number type; half-precision carries y in f32.
struct LinearRecurrence {
  static constexpr auto name = "linear_recurrence";
  static constexpr auto library_kernel = "linear_recurrence";
  int axis = -1;         // counts from the end
  bool reverse = false;  // run from the end
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// x shifted by one place along `axis` towards higher indices (with `reverse`: lower). `first` fills the gap.
Tensor moved_by_one(const Tensor& x, int axis, scalar::Literal first, bool reverse);

}  // namespace gradus
