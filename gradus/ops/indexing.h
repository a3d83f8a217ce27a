/// Indexing by data: along an axis, in batches, by positions of several numbers, by one index an element. Indices are
/// integers; one outside its range is an OutOfRange when the value is observed, negative ones included. Gradients add
/// what repeated indices get.
#pragma once
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: [outer..., n, inner...] (n at `axis`), indices: integers [places...] -> [outer..., places..., inner...]. An index
/// outside [0, n) is an OutOfRange when the value is observed, negative ones included; so is an axis that x does not
/// have, at once. InvalidArgument for indices of another type and for a scalar x. The gradient adds what repeated
/// indices get.
Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0);
/// indices: integers [places..., k], each a position in the first k dimensions of x: [n1 ... nk, inner...] ->
/// [places..., inner...]. Ranges as for gather. InvalidArgument for indices of another type and unless k is 1 to the
/// number of dimensions of x.
Tensor gather_nd(const Tensor& x, const Tensor& indices);
/// x: [batch..., outer..., n, inner...] (n at `axis`), indices: [batch..., places...] -> [batch..., outer...,
/// places..., inner...]: each of the first `batch_dims` dimensions, which must agree, has its own indices. batch_dims
/// <= axis.
Tensor gather(const Tensor& x, const Tensor& indices, int axis, int batch_dims);
/// indices: [batch..., places..., k], each a position in the k dimensions of x: [batch..., n1 ... nk, inner...] that
/// follow the first `batch_dims` -> [batch..., places..., inner...].
Tensor gather_nd(const Tensor& x, const Tensor& indices, int batch_dims);
/// out[i, j, k] = x[i, indices[i, j, k], k] for axis 1, as NumPy's: the other dimensions broadcast.
Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis = -1);

// For the rooms of the library.

/// Integers of any type as i32 or i64, which hold them: what primitives take as indices. `op` opens the error.
Tensor as_indices(std::string_view op, const Tensor& indices);
/// Indices of ONNX and NumPy, where a negative one counts from the end of n.
Tensor wrapped_indices(const Tensor& indices, std::int64_t n);
/// `indices`: [..., k], each a position within `dimensions`, of which there are k: their flat row-major indices, i64,
/// checked number by number.
Tensor flat_positions(std::string_view op, const Tensor& indices, const Shape& dimensions);
/// ONNX's GatherElements: as take_along_axis, but the other dimensions of the indices may be shorter than those of x.
Tensor gather_elements(const Tensor& x, const Tensor& indices, int axis);
/// The flat index in x of what gather_elements reads, i64, of the shape of `indices`.
Tensor element_positions(std::string_view op, const Shape& x, const Tensor& indices, int axis);
/// 0, 1 ... along dimension `axis` of `rank`, which is of size n; the others are 1.
Tensor iota_along(int rank, int axis, std::int64_t n, DType dtype);

}  // namespace gradus
