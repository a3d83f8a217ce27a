/// Reductions over the named axes, or over all. A reduction of nothing gives its identity (0, 1, the lowest or highest
/// number, false, true); the mean of nothing is NaN. Float sums follow the fixed order of the numeric contract.
/// InvalidArgument for booleans where numbers are expected, for a dtype that a function excludes, and for an axis that
/// is named twice. OutOfRange for an axis that x does not have.
#pragma once
#include <vector>
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// Options of reductions.
struct ReduceOptions {
  std::vector<int> axis = {};  // axes to reduce; none: all
  bool keepdims = false;       // keep reduced dimensions as 1
};

/// Sum in the dtype of `x`. Integers wrap around.
Tensor reduce_sum(const Tensor& x, ReduceOptions options = {});
/// Sum divided by the number of elements. Floats: integers are an InvalidArgument that names `cast`.
Tensor reduce_mean(const Tensor& x, ReduceOptions options = {});
/// Largest element; NaN if there is one. The gradient is split evenly among ties.
Tensor reduce_max(const Tensor& x, ReduceOptions options = {});
/// Smallest element; NaN if there is one. The gradient is split evenly among ties.
Tensor reduce_min(const Tensor& x, ReduceOptions options = {});
/// Product. Its gradient is exact where elements are 0.
Tensor reduce_prod(const Tensor& x, ReduceOptions options = {});
/// log(sum(exp(x))), without overflow.
Tensor reduce_logsumexp(const Tensor& x, ReduceOptions options = {});
/// True if any element of a boolean tensor is.
Tensor reduce_any(const Tensor& x, ReduceOptions options = {});
/// True if all elements of a boolean tensor are.
Tensor reduce_all(const Tensor& x, ReduceOptions options = {});
/// Square root of the variance. Its gradient is 0 where the variance is 0.
Tensor reduce_std(const Tensor& x, ReduceOptions options = {});
/// Mean squared distance from the mean (divided by n), in two passes: never negative. Floats only.
Tensor reduce_variance(const Tensor& x, ReduceOptions options = {});
/// Euclidean norm sqrt(sum(x^2)). Its gradient at 0 is 0. Floats only.
Tensor norm(const Tensor& x, ReduceOptions options = {});
/// Running sums along `axis`, each including its own element.
Tensor cumsum(const Tensor& x, int axis = 0);
/// i32 index of the largest element along `axis`, the first among equals. NaN counts as the lowest number, as in
/// TensorFlow. InvalidArgument if there is no element, OutOfRange if i32 cannot hold the indices.
Tensor argmax(const Tensor& x, int axis = -1);
/// i32 index of the smallest element along `axis`, the first among equals. NaN counts as the highest number.
Tensor argmin(const Tensor& x, int axis = -1);

/// The norm of order `ord`: sum |x| for 1, Euclidean for 2, the largest |x| for infinity, else (sum |x|^ord)^(1/ord).
/// Gradients at 0 are 0; at ties of the largest they are split evenly. Floats; InvalidArgument unless ord > 0.
Tensor norm(const Tensor& x, double ord, ReduceOptions options = {});
/// norm(x), under TensorFlow's name.
Tensor reduce_euclidean_norm(const Tensor& x, ReduceOptions options = {});
/// Number of elements that are not 0, as i64. Any dtype.
Tensor count_nonzero(const Tensor& x, ReduceOptions options = {});
/// Share of elements that are 0, as f32; NaN for an empty tensor.
Tensor zero_fraction(const Tensor& x);

/// Options of argmax and argmin.
struct ArgOptions {
  int axis = -1;                   // axis to reduce
  bool keepdims = false;           // keep the reduced dimension as 1
  bool select_last_index = false;  // take the last among equals, not the first
  DType output_type = i32;         // dtype of the indices
};
/// As argmax(x, axis), with more options. OutOfRange if output_type cannot hold the indices along the axis.
Tensor argmax(const Tensor& x, ArgOptions options);
/// As argmin(x, axis), with more options.
Tensor argmin(const Tensor& x, ArgOptions options);
/// 1 at the first of the largest elements along `axis`, 0 elsewhere.
Tensor hardmax(const Tensor& x, int axis = -1);
inline Tensor hardmax(const Tensor& x, NamedAxis named) { return hardmax(x, named.axis); }

/// targets: integers [...], predictions: floats [..., classes] -> boolean [...]: true if fewer than k classes have a
/// larger prediction than the target. False for a target that is no class, or a prediction that is not finite.
Tensor in_top_k(const Tensor& targets, const Tensor& predictions, std::int64_t k);

/// One boolean: true if each element, in row-major order, is at least the one before. True for fewer than two.
Tensor is_non_decreasing(const Tensor& x);
/// One boolean: true if each element, in row-major order, is above the one before. True for fewer than two.
Tensor is_strictly_increasing(const Tensor& x);

namespace detail::inline rooms {

/// The gradient of broadcast_to by its operand: sums of x along repeated dimensions, down to `shape`.
Tensor sum_to(const Tensor& x, const Shape& shape);
/// An extent, symbolic or not, as a scalar.
Tensor extent(std::int64_t dimension, DType dtype);
/// The number of elements of `x` as a scalar of `dtype`.
Tensor element_count(const Tensor& x, DType dtype);

}  // namespace detail::inline rooms

}  // namespace gradus
