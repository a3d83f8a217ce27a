/// Writing by data: an array with some of its elements replaced, or combined with others. Indices are as for gather:
/// one outside its range is an OutOfRange when the value is observed. Where several updates meet at one place they are
/// taken in the order of their indices, on any number of threads: the last one replaces.
///
/// Gradients, of every order: what is replaced gets none, of updates that meet only the last one does; ties of minima
/// and maxima share evenly, the operand among them, as in TensorFlow; products are right where factors are 0.
#pragma once
#include <array>
#include "gradus/graph/tensor.h"

namespace gradus {

/// How updates are combined with what stands there.
enum class Reduction { none, add, mul, min, max };

/// Zeros of `shape`, to which updates: [places..., inner...] are added at indices: [places..., k], positions in the
/// first k dimensions of `shape`.
Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape);
/// x with slices replaced: indices and updates as for scatter_nd, with x in place of `shape`. Any dtype; the other
/// reductions take numbers.
Tensor tensor_scatter_nd_update(const Tensor& x, const Tensor& indices, const Tensor& updates);
Tensor tensor_scatter_nd_add(const Tensor& x, const Tensor& indices, const Tensor& updates);
Tensor tensor_scatter_nd_sub(const Tensor& x, const Tensor& indices, const Tensor& updates);
Tensor tensor_scatter_nd_min(const Tensor& x, const Tensor& indices, const Tensor& updates);
Tensor tensor_scatter_nd_max(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// The above by name, and products.
Tensor tensor_scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates, Reduction reduction);
/// x with x[i, indices[i, j, k], k] replaced by values[i, j, k] for axis 1, as NumPy's, which changes x in place;
/// indices and values broadcast to each other and to the other dimensions of x.
Tensor put_along_axis(const Tensor& x, const Tensor& indices, const Tensor& values, int axis = -1);

// For the rooms of the library.

/// ONNX's ScatterElements: indices and updates have one shape, whose other dimensions may be shorter than those of x.
Tensor scatter_elements(const Tensor& x, const Tensor& indices, const Tensor& updates, int axis, Reduction reduction);

/// x: T[outer..., n, inner...], indices: i32 or i64 [places...], updates: T[outer..., places..., inner...] -> x with
/// x[o, indices[p], i] combined with updates[o, p, i] for ascending p. `axis` is that of n, counted from the end;
/// `kind` is a Reduction. A primitive since where it writes depends on data.
struct Scatter {
  static constexpr auto name = "scatter";
  static constexpr auto library_kernel = "scatter";
  static constexpr auto takes = Takes::anything;
  static constexpr bool may_fail = true;
  int axis = -1;
  int kind = 0;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// x: T[n, inner...], indices: i32 or i64 [places...], rows: T[places..., inner...] -> x with row indices[p] replaced
/// by rows[p]; the last of several at one row counts. A place outside [0, n) is passed over, so -1 stands for none.
/// Where x dies with it, it is written in the memory of x and costs what the rows cost. A primitive since where it
/// writes depends on data, and apart from Scatter since it cannot fail: so it may write over what a failure has to
/// leave.
struct UpdateRows {
  static constexpr auto name = "update_rows";
  static constexpr auto library_kernel = "update_rows";
  static constexpr auto takes = Takes::anything;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};
Tensor update_rows(const Tensor& x, const Tensor& indices, const Tensor& rows);
/// Rows of x: T[n, inner...]; for a place of -1 some row.
Tensor rows_at(const Tensor& x, const Tensor& indices);
/// `next` where the boolean scalar `condition` holds, else `before`, of which next is a change: what differs in some
/// rows only is chosen row by row.
Tensor where_changed(const Tensor& condition, const Tensor& next, const Tensor& before);

}  // namespace gradus
