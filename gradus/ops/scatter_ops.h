/// The primitives that write by data, and what optimizers do with rows of tables.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/ops/scatter.h"

namespace gradus {

/// ONNX's ScatterElements: indices and updates have one shape, whose other dimensions may be shorter than those of x.
Tensor scatter_elements(const Tensor& x, const Tensor& indices, const Tensor& updates, int axis, Reduction reduction);

/// x: T[outer..., n, inner...], indices: i32 or i64 [places...], updates: T[outer..., places..., inner...] -> x with
/// x[o, indices[p], i] combined with updates[o, p, i] for ascending p. `axis` is the axis of n, counted from the end;
/// `kind` is a Reduction. A primitive since data decides where it writes.
struct Scatter {
  static constexpr auto name = "scatter";
  static constexpr auto library_kernel = "scatter";
  static constexpr auto takes = Takes::anything;
  static constexpr bool may_fail = true;
  int axis = -1;  // axis of n, counted from the end
  int kind = 0;   // a Reduction
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// x: T[n, inner...], indices: i32 or i64 [places...], rows: T[places..., inner...] -> x with row indices[p] replaced
/// by rows[p]; of several at one row the last one counts. A place outside [0, n) is skipped, so -1 stands for none. If
/// x dies with it, it is written in the memory of x and costs what the rows cost (buffer donation). A primitive since
/// data decides where it writes. Apart from Scatter since it cannot fail: so it may overwrite what a failure has to
/// leave.
struct UpdateRows {
  static constexpr auto name = "update_rows";
  static constexpr auto library_kernel = "update_rows";
  static constexpr auto takes = Takes::anything;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};
/// x with rows replaced, as UpdateRows says.
Tensor update_rows(const Tensor& x, const Tensor& indices, const Tensor& rows);
/// Rows of x: T[n, inner...] at `indices`. A place of -1 gives an arbitrary row.
Tensor rows_at(const Tensor& x, const Tensor& indices);
/// `next` where the boolean scalar `condition` holds, else `before`. `next` is a change of `before`: if it differs in
/// some rows only, the choice is made row by row.
Tensor where_changed(const Tensor& condition, const Tensor& next, const Tensor& before);

}  // namespace gradus
