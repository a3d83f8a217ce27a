/// Ops whose result has a shape that depends on data. The operand that determines the shape must be known when they are
/// applied. Inside a traced function they are InvalidArguments that name an alternative. The selected elements keep
/// their gradients.
#pragma once
#include <optional>
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// Positions where a condition holds, or where a number is not 0: i64 [found, rank], in row-major order.
Tensor where(const Tensor& condition);
/// where(x), transposed: [rank, found].
Tensor nonzero(const Tensor& x);
/// Elements where a mask holds. x: [outer..., n1 ... nk, inner...], mask: boolean [n1 ... nk], n1 at `axis` ->
/// [outer..., found, inner...].
Tensor boolean_mask(const Tensor& x, const Tensor& mask, int axis = 0);
inline Tensor boolean_mask(const Tensor& x, const Tensor& mask, NamedAxis named) {
  return boolean_mask(x, mask, named.axis);
}
/// Elements along `axis` where the vector `condition`, which may be shorter, holds. Without an axis x is flattened.
Tensor compress(const Tensor& x, const Tensor& condition, std::optional<int> axis = {});
inline Tensor compress(const Tensor& x, const Tensor& condition, NamedAxis named) {
  return compress(x, condition, named.axis);
}

/// Result of unique.
struct Unique {
  Tensor values;   // the distinct elements, or slices along the axis
  Tensor index;    // position in `values` of each element; in the shape of x, or a vector along the axis
  Tensor count;    // number of occurrences of each of them
  Tensor indices;  // first occurrence of each of them, along the axis or in x flattened
};
/// Options of unique.
struct UniqueOptions {
  std::optional<int> axis = {};  // takes slices along the axis; none: the elements of x, flattened
  bool sorted = false;           // ascending, slices compared number by number; else in the order of occurrence
  DType out_idx = i32;           // integer type of positions and counts
};
/// The distinct elements of x. NaN equals NaN, and stands last. OutOfRange if out_idx cannot hold the indices.
Unique unique(const Tensor& x, const UniqueOptions& options = {});
/// unique() under TensorFlow's other name.
Unique unique_with_counts(const Tensor& x);

/// Number of occurrences of each number: dtype [largest + 1], at least `minlength` long. x: integers that are not
/// negative. OutOfRange if `dtype`, an integer type, does not hold a count.
Tensor bincount(const Tensor& x, std::int64_t minlength = 0, DType dtype = i32);
/// Histogram. x: T[...] -> dtype [bins]: numbers of elements in each of `bins` equal parts of [low, high). Elements
/// outside count in the first and last part, NaN in none. Floats. It can be traced, since its shape is known.
/// OutOfRange if `dtype`, an integer type, does not hold the number of elements.
Tensor histogram_fixed_width(const Tensor& x, double low, double high, std::int64_t bins = 100, DType dtype = i32);

/// x with element i along `axis` repeated `repeats[i]` times; `repeats` is a vector of integers.
Tensor repeat(const Tensor& x, const Tensor& repeats, int axis);
inline Tensor repeat(const Tensor& x, const Tensor& repeats, NamedAxis named) { return repeat(x, repeats, named.axis); }

}  // namespace gradus
