/// Tensors made from numbers alone: ranges, identity matrices, one-hot rows.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// The integers 0, 1 ... n - 1. InvalidArgument for bool or a negative n, OutOfRange if the dtype does not hold n - 1.
Tensor range(std::int64_t n, DType dtype = i32);
/// n numbers in equal steps, both ends included. InvalidArgument unless the dtype is a float type and n is positive.
Tensor linspace(double first, double last, std::int64_t n, DType dtype = f32);
/// The n x n identity matrix. InvalidArgument for a negative n.
Tensor eye(std::int64_t n, DType dtype = f32);
/// labels: an integer type [...] -> [..., classes], with 1 at the label and 0 elsewhere. A label outside [0, classes)
/// gives a row of zeros, as in TensorFlow. InvalidArgument for labels of another type or negative classes.
Tensor one_hot(const Tensor& labels, std::int64_t classes, DType dtype = f32);

namespace detail::inline rooms {
/// The flat row-major index of every element, in `dtype` (a number type). Dimensions may be symbolic.
Tensor iota(const Shape& shape, DType dtype = i64);
}  // namespace detail::inline rooms

}  // namespace gradus
