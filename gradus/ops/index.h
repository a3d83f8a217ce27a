/// Tensors that are functions of an index, and indexing by data.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// 0, 1 ... n - 1. InvalidArgument for bool or a negative n, OutOfRange if the dtype does not hold n - 1.
Tensor range(std::int64_t n, DType dtype = i32);
/// n numbers in equal steps, both ends included. InvalidArgument unless they are floats and n is positive.
Tensor linspace(double first, double last, std::int64_t n, DType dtype = f32);
/// The n x n identity matrix. InvalidArgument for a negative n.
Tensor eye(std::int64_t n, DType dtype = f32);
/// labels: an integer type [places...] -> [places..., classes]: 1 at the label, 0 elsewhere; a label outside
/// [0, classes) gives a row of zeros, as in TensorFlow. InvalidArgument for labels of another type or negative classes.
Tensor one_hot(const Tensor& labels, std::int64_t classes, DType dtype = f32);
/// x: [outer..., n, inner...] (n at `axis`), indices: integers [places...] -> [outer..., places..., inner...]. An index
/// outside [0, n) is an OutOfRange when the value is observed, negative ones included; so is an axis that x does not
/// have, at once. InvalidArgument for indices of another type and for a scalar x. The gradient adds what repeated
/// indices get.
Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0);
/// indices: integers [places..., k], each a position in the first k dimensions of x: [n1 ... nk, inner...] ->
/// [places..., inner...]. Ranges as for gather. InvalidArgument for indices of another type and unless k is 1 to the
/// number of dimensions of x.
Tensor gather_nd(const Tensor& x, const Tensor& indices);

// For the rooms of the library.

/// Integers of any type as i32 or i64, which hold them: what primitives take as indices. `op` opens the error.
Tensor as_indices(std::string_view op, const Tensor& indices);

/// The flat row-major index of every element, in `dtype` (a number type). Dimensions may be symbolic.
Tensor iota(const Shape& shape, DType dtype = i64);

}  // namespace gradus
