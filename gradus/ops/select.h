/// Ops whose result has a shape that depends on data. The operand that decides must be known when they are applied.
/// Inside a traced function they are InvalidArguments that name an alternative. The selected elements keep their
/// gradients.
#pragma once
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Positions where a condition holds, or where a number is not 0: i64 [found, rank], in row-major order.
Tensor where(const Tensor& condition);
/// where(x), transposed: [rank, found].
Tensor nonzero(const Tensor& x);
/// Elements where a mask holds. x: [outer..., n1 ... nk, inner...], mask: boolean [n1 ... nk], n1 at `axis` ->
/// [outer..., found, inner...].
Tensor boolean_mask(const Tensor& x, const Tensor& mask, int axis = 0);
/// Elements along `axis` where the vector `condition`, which may be shorter, holds. Without an axis x is flattened.
Tensor compress(const Tensor& x, const Tensor& condition, std::optional<int> axis = {});

/// Result of unique.
struct Unique {
  Tensor values;   // the distinct elements, or slices along the axis
  Tensor index;    // i32: position in `values` of each element; in the shape of x, or a vector along the axis
  Tensor count;    // i32: number of occurrences of each of them
  Tensor indices;  // i32: first occurrence of each of them, along the axis or in x flattened
};
/// Options of unique.
struct UniqueOptions {
  std::optional<int> axis = {};  // takes slices along the axis; none: the elements of x, flattened
  bool sorted = false;           // ascending, slices compared number by number; else in the order of occurrence
};
/// The distinct elements of x. NaN equals NaN, and stands last.
Unique unique(const Tensor& x, const UniqueOptions& options = {});
/// unique() under TensorFlow's other name.
Unique unique_with_counts(const Tensor& x);

/// Number of occurrences of each number: i32 [largest + 1], at least `minlength` long. x: integers that are not
/// negative.
Tensor bincount(const Tensor& x, std::int64_t minlength = 0);
/// Histogram. x: T[...] -> i32 [bins]: numbers of elements in each of `bins` equal parts of [low, high). Elements
/// outside count to the first and last one. Floats. It can be traced, since its shape is known.
Tensor histogram_fixed_width(const Tensor& x, double low, double high, std::int64_t bins = 100);

/// x with element i along `axis` repeated `repeats[i]` times; `repeats` is a vector of integers.
Tensor repeat(const Tensor& x, const Tensor& repeats, int axis);

}  // namespace gradus
