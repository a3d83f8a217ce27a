/// Indexing by data: along an axis, in batches, by positions of several numbers, by one index per element. Indices are
/// integers. An index outside its range, such as a negative one, is an OutOfRange when the value is observed. Gradients
/// add up where an index is repeated.
#pragma once
#include <vector>
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// x: [outer..., n, inner...] (n at `axis`), indices: integers [places...] -> [outer..., places..., inner...]. An index
/// outside [0, n) is an OutOfRange when the value is observed. An axis that x does not have is an OutOfRange at once.
/// InvalidArgument for indices of another type and for a scalar x. The gradient adds up where an index is repeated.
Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0);
/// indices: integers [places..., k], each a position in the first k dimensions of x: [n1 ... nk, inner...] ->
/// [places..., inner...]. Ranges as for gather. InvalidArgument for indices of another type, and unless k is 1 to the
/// number of dimensions of x.
Tensor gather_nd(const Tensor& x, const Tensor& indices);
/// Batched gather. x: [batch..., outer..., n, inner...] (n at `axis`), indices: [batch..., places...] -> [batch...,
/// outer..., places..., inner...]. Each element of the first `batch_dims` dimensions, which must agree, has its own
/// indices. batch_dims <= axis.
Tensor gather(const Tensor& x, const Tensor& indices, int axis, int batch_dims);
/// Options of gather.
struct GatherOptions {
  int axis = 0;        // axis of n
  int batch_dims = 0;  // leading dimensions whose elements have indices of their own
};
inline Tensor gather(const Tensor& x, const Tensor& indices, GatherOptions options) {
  return gather(x, indices, options.axis, options.batch_dims);
}
/// Batched gather_nd. indices: [batch..., places..., k], each a position in the k dimensions of x: [batch..., n1 ...
/// nk, inner...] that follow the first `batch_dims` -> [batch..., places..., inner...].
Tensor gather_nd(const Tensor& x, const Tensor& indices, int batch_dims);
/// out[i, j, k] = x[i, indices[i, j, k], k] for axis 1, as NumPy's. The other dimensions broadcast.
Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis = -1);
inline Tensor take_along_axis(const Tensor& x, const Tensor& indices, NamedAxis named) {
  return take_along_axis(x, indices, named.axis);
}

namespace detail::inline rooms {

/// Integers of any type as i32 or i64, whichever holds them: primitives take these as indices. `op` opens the error.
Tensor as_indices(std::string_view op, const Tensor& indices);
/// Indices of ONNX and NumPy, where a negative one counts from the end of n. One outside stays as it is, so that an
/// error names it. `op` opens the error of another type.
Tensor wrapped_indices(const Tensor& indices, std::int64_t n, std::string_view op = "indices");
/// Flat row-major indices, i64, of the positions `indices`: [..., k] within the k `dimensions`. Checked number by
/// number.
Tensor flat_positions(std::string_view op, const Tensor& indices, const Shape& dimensions);
/// ONNX's GatherElements: as take_along_axis, but the other dimensions of the indices may be shorter than those of x.
Tensor gather_elements(const Tensor& x, const Tensor& indices, int axis);
/// The flat index in x of each element that gather_elements reads: i64, in the shape of `indices`.
Tensor element_positions(std::string_view op, const Shape& x, const Tensor& indices, int axis);
/// 0, 1 ... along dimension `axis` of `rank`, which has size n; the others have size 1.
Tensor iota_along(int rank, int axis, std::int64_t n, DType dtype);

}  // namespace detail::inline rooms

}  // namespace gradus
