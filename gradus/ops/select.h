/// Ops whose result has a shape that depends on data. What decides about it must be known when they are applied: inside
/// a function that is traced they are InvalidArguments which name what to use instead. The elements that are selected
/// keep their gradients.
#pragma once
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The positions where a condition holds (or a number is not 0): i64 [found, rank], in row-major order.
Tensor where(const Tensor& condition);
/// The same, transposed: [rank, found].
Tensor nonzero(const Tensor& x);
/// x: [outer..., n1 ... nk, inner...] and mask: boolean [n1 ... nk], n1 at `axis` -> [outer..., found, inner...].
Tensor boolean_mask(const Tensor& x, const Tensor& mask, int axis = 0);
/// The elements along `axis` (of all of x, flat, if there is none) where the vector `condition`, which may be shorter,
/// holds.
Tensor compress(const Tensor& x, const Tensor& condition, std::optional<int> axis = {});

struct Unique {
  Tensor values;   // the distinct elements, or slices along the axis
  Tensor index;    // i32: where in `values` each element stands; of the shape of x, or a vector along the axis
  Tensor count;    // i32: how often each of them occurs
  Tensor indices;  // i32: where each of them occurs first, along the axis or in all of x, flat
};
struct UniqueOptions {
  std::optional<int> axis = {};  // none: the elements of all of x, flat
  bool sorted = false;           // ascending, slices compared number by number; else in the order of occurrence
};
/// NaN equals NaN, and stands last.
Unique unique(const Tensor& x, const UniqueOptions& options = {});
/// The same, by TensorFlow's other name.
Unique unique_with_counts(const Tensor& x);

/// How often each number occurs: i32 [largest + 1], at least `minlength` long. x: integers that are not negative.
Tensor bincount(const Tensor& x, std::int64_t minlength = 0);
/// x: T[...] -> i32 [bins]: how many elements lie in each of `bins` equal parts of [low, high); those outside count to
/// the first and last one. Floats. Known inside a trace too, since the shape is.
Tensor histogram_fixed_width(const Tensor& x, double low, double high, std::int64_t bins = 100);

/// x with element i along `axis` repeated `repeats[i]` times; a vector of integers.
Tensor repeat(const Tensor& x, const Tensor& repeats, int axis);

}  // namespace gradus
