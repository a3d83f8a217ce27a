/// Norms, moments, counts and tests that are made of the reductions of gradus/ops/reduce.h.
#pragma once
#include "gradus/ops/reduce.h"

namespace gradus {

/// The norm of order `ord`: sum |x| for 1, Euclidean for 2, the largest |x| for infinity, else (sum |x|^ord)^(1/ord).
/// Gradients at 0 are 0, at ties of the largest split evenly. Floats; InvalidArgument unless ord > 0.
Tensor norm(const Tensor& x, double ord, ReduceOptions options = {});
/// norm(x)
Tensor reduce_euclidean_norm(const Tensor& x, ReduceOptions options = {});
/// How many elements are not 0, as i64. Any dtype.
Tensor count_nonzero(const Tensor& x, ReduceOptions options = {});
/// The part of the elements that are 0, as f32; NaN of nothing.
Tensor zero_fraction(const Tensor& x);

struct ArgOptions {
  int axis = -1;
  bool keepdims = false;
  bool select_last_index = false;  // among equals
  DType output_type = i32;
};
/// As argmax(x, axis) and argmin(x, axis), with more to choose.
Tensor argmax(const Tensor& x, ArgOptions options);
Tensor argmin(const Tensor& x, ArgOptions options);
/// 1 at the first of the largest elements along `axis`, 0 elsewhere.
Tensor hardmax(const Tensor& x, int axis = -1);

/// targets: integers [places...], predictions: floats [places..., classes] -> boolean [places...]: whether fewer than k
/// classes have a larger prediction than the target. False of a target that is no class, or of a prediction that is not
/// finite.
Tensor in_top_k(const Tensor& targets, const Tensor& predictions, std::int64_t k);

/// Whether each element, in row-major order, is at least (above) the one before: one boolean, true of fewer than two.
Tensor is_non_decreasing(const Tensor& x);
Tensor is_strictly_increasing(const Tensor& x);

}  // namespace gradus
