/// TensorFlow's names of ops that the library has with another signature, and statistics from sums.
#pragma once
#include <optional>
#include <utility>
#include <vector>
#include "gradus/ops/conv.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/special.h"

namespace gradus {

/// multiply(scalar, x).
inline Tensor scalar_mul(const NumberOrTensor& scalar, const NumberOrTensor& x) { return multiply(scalar, x); }
/// add_n(inputs).
inline Tensor accumulate_n(const std::vector<Tensor>& inputs) { return add_n(inputs); }
/// divide(a, b).
inline Tensor realdiv(const NumberOrTensor& a, const NumberOrTensor& b) { return divide(a, b); }
/// inverse(x).
inline Tensor inv(const Tensor& x) { return inverse(x); }
/// local_response_normalization(x, options).
inline Tensor lrn(const Tensor& x, LocalResponseOptions options = {}) {
  return local_response_normalization(x, std::move(options));
}
/// space_to_batch_nd(x, block_shape, paddings).
inline Tensor space_to_batch(const Tensor& x, const std::vector<std::int64_t>& block_shape,
                             const std::vector<std::array<std::int64_t, 2>>& paddings) {
  return space_to_batch_nd(x, block_shape, paddings);
}
/// batch_to_space_nd(x, block_shape, crops).
inline Tensor batch_to_space(const Tensor& x, const std::vector<std::int64_t>& block_shape,
                             const std::vector<std::array<std::int64_t, 2>>& crops) {
  return batch_to_space_nd(x, block_shape, crops);
}
/// conv2d with `rate` as dilations.
inline Tensor atrous_conv2d(const Tensor& value, const Tensor& filters, std::int64_t rate,
                            Padding padding = Padding::valid) {
  return conv2d(value, filters, {.padding = padding, .dilations = {rate}});
}

/// Result of normalize.
struct Normalized {
  Tensor output, norm;  // x / norm, and the norm
};
/// x / norm, and the norm of order `ord` along `axis`, kept as 1.
Normalized normalize(const Tensor& x, double ord = 2, const std::vector<int>& axis = {});
/// Options of normalize.
struct NormalizeOptions {
  double ord = 2;              // order of the norm
  std::vector<int> axis = {};  // axes of the norm; none: all
};
inline Normalized normalize(const Tensor& x, const NormalizeOptions& options) {
  return normalize(x, options.ord, options.axis);
}

/// Mean and variance of x with `weights` that broadcast to it: sums of weighted elements over the sum of weights.
Moments weighted_moments(const Tensor& x, const Tensor& weights, ReduceOptions options = {});

/// Result of sufficient_statistics.
struct SufficientStatistics {
  Tensor count, mean, variance, shift;  // size; sums of x - shift and of its square; shift as given
};
/// Number of elements, sum and sum of squares of x - shift, from which normalize_moments computes moments.
SufficientStatistics sufficient_statistics(const Tensor& x, ReduceOptions options = {}, const Tensor& shift = {});
/// Mean and variance from sufficient statistics.
Moments normalize_moments(const SufficientStatistics& statistics);

/// Options of dilation2d and erosion2d.
struct DilationOptions {
  std::vector<std::int64_t> strides = {};    // one per spatial dimension, or one for both; none: 1
  Padding padding = Padding::valid;          // padding around the input
  std::vector<std::int64_t> dilations = {};  // distances between taps; none: 1
};
/// Grayscale dilation: the largest x + filter of each window, without padding. x: T[batch, height, width, C], filters:
/// T[rows, columns, C] -> T[batch, windows..., C]. Ties share the gradient. Floats; sizes must be known.
Tensor dilation2d(const Tensor& x, const Tensor& filters, const DilationOptions& options = {});
/// Grayscale erosion: the smallest x - filter, with the filter rotated by half a turn.
Tensor erosion2d(const Tensor& x, const Tensor& filters, const DilationOptions& options = {});

}  // namespace gradus
