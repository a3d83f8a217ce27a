/// Writing by data: a tensor with some of its elements replaced, or combined with others. Indices are as for gather:
/// one outside its range is an OutOfRange when the value is observed. Several updates of one element are applied in
/// order, on any number of threads: the last one replaces.
///
/// Gradients exist in every order. Replaced elements get none; of several updates of one element only the last one
/// does. Ties of minima and maxima share evenly, the operand among them, as in TensorFlow. Gradients of products are
/// right where factors are 0.
#pragma once
#include <array>
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// Combination of an update with the element that it names.
enum class Reduction { none, add, mul, min, max };

/// Zeros of `shape`, to which updates: [places..., inner...] are added at indices: [places..., k], positions in the
/// first k dimensions of `shape`.
Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape);
/// x with slices replaced. Indices and updates are as for scatter_nd, with x in place of `shape`. Any dtype.
Tensor tensor_scatter_nd_update(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// x with updates added. Number types.
Tensor tensor_scatter_nd_add(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// x with updates subtracted. Number types.
Tensor tensor_scatter_nd_sub(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// The smaller of element and update. Number types.
Tensor tensor_scatter_nd_min(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// The larger of element and update. Number types.
Tensor tensor_scatter_nd_max(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// tensor_scatter_nd_update, _add, _min or _max by `reduction`; mul multiplies.
Tensor tensor_scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates, Reduction reduction);
/// x with x[i, indices[i, j, k], k] replaced by values[i, j, k] for axis 1. NumPy's function changes x in place.
/// Indices and values broadcast to each other and to the other dimensions of x.
Tensor put_along_axis(const Tensor& x, const Tensor& indices, const Tensor& values, int axis = -1);
inline Tensor put_along_axis(const Tensor& x, const Tensor& indices, const Tensor& values, NamedAxis named) {
  return put_along_axis(x, indices, values, named.axis);
}

}  // namespace gradus
