/// Normalisations. All take floats; types narrower than f32 are computed in f32 and rounded once. Variances are biased
/// (divided by n) and computed in two passes, so they are never negative. They have gradients of every order.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/ops/named_axis.h"
#include "gradus/ops/reduce.h"

namespace gradus {

/// Mean and variance of a tensor.
struct Moments {
  Tensor mean, variance;  // over the axes, in the dtype of the input
};
/// Mean and biased variance over the named axes, or over all. NaN for empty tensors.
Moments moments(const Tensor& x, ReduceOptions options = {});

/// Options of batch, instance and group normalization.
struct ChannelNormalizationOptions {
  Tensor scale = {}, offset = {};  // empty (1 and 0) or [n], n the extent of `axis`, in the dtype of x
  int axis = -1;                   // axis of the channels
  double epsilon = 1e-3;           // added to the variance
  Tensor mask = {};  // empty, or bool [first dimensions of x]; false: left out of the moments, counts as 0
  static constexpr auto ranges() { return std::array{Allowed::any("axis"), Allowed::not_negative("epsilon")}; }
};
/// (x - mean) / sqrt(variance + epsilon) * scale + offset. x: T[...], mean, variance: [n], n the extent of `axis`:
/// moving averages in inference, moments(x) over all other axes in training. It takes no mask.
Tensor batch_normalization(const Tensor& x, const Tensor& mean, const Tensor& variance,
                           ChannelNormalizationOptions options = {});
/// Normalizes each example and channel by its own moments over the other axes (Ulyanov et al. 2016). x: [batch, ...],
/// channels at `axis`.
Tensor instance_normalization(const Tensor& x, ChannelNormalizationOptions options = {});
/// Normalizes each example by the moments of `groups` groups of neighbouring channels (Wu and He 2018). x: [batch,
/// ...], channels at `axis`, a multiple of `groups`. One group is the whole example.
Tensor group_normalization(const Tensor& x, std::int64_t groups, ChannelNormalizationOptions options = {});

/// Options of layer and RMS normalization.
struct LayerOptions {
  Tensor scale = {}, offset = {};  // empty, or in the shape of the extents of `axis`, or one that broadcasts to x
  std::vector<int> axis = {-1};    // axes of the moments
  double epsilon = 1e-3;           // added to the variance, or to the mean square
  Tensor mask = {};                // as in ChannelNormalizationOptions
  static constexpr auto ranges() { return std::array{Allowed::any("axis"), Allowed::not_negative("epsilon")}; }
};
/// (x - mean) / sqrt(variance + epsilon) * scale + offset, with moments over `axis` (Ba et al. 2016).
Tensor layer_normalization(const Tensor& x, LayerOptions options = {});
/// x / sqrt(mean(x^2) + epsilon) * scale + offset, with the mean over `axis` (Zhang and Sennrich 2019).
Tensor rms_normalization(const Tensor& x, LayerOptions options = {});

/// Options of local_response_normalization.
struct LocalResponseOptions {
  std::int64_t depth_radius = 5;                 // number of channels before each
  std::optional<std::int64_t> depth_after = {};  // number of channels after each; as many by default
  double bias = 1, alpha = 1, beta = 0.5;        // terms of the formula
  int axis = -1;                                 // axis of the channels
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("depth_radius depth_after"), Allowed::finite("bias alpha beta"),
                      Allowed::any("axis")};
  }
};
/// x / (bias + alpha * sum of the squares of neighbouring channels)^beta (Krizhevsky et al. 2012).
Tensor local_response_normalization(const Tensor& x, LocalResponseOptions options = {});

/// (x - mean) / (standard deviation + 1e-9) over the axes, as ONNX's MeanVarianceNormalization. Where the deviation is
/// 0, its gradient is 0.
Tensor mean_variance_normalization(const Tensor& x, const NamedAxes& named);
template <class = void> Tensor mean_variance_normalization(const Tensor& x, const std::vector<int>& axis = {0, 2, 3}) {
  return mean_variance_normalization(x, NamedAxes{axis});
}

/// Options of l2_normalize.
struct L2NormalizeOptions {
  std::vector<int> axis = {};  // axes of the sum; none: all
  double epsilon = 1e-12;      // lower bound of the sum of squares
};
/// x / sqrt(max(sum(x^2), epsilon)) along the named axes, or along all.
Tensor l2_normalize(const Tensor& x, const L2NormalizeOptions& options);
template <class = void>
Tensor l2_normalize(const Tensor& x, const std::vector<int>& axis = {}, double epsilon = 1e-12) {
  return l2_normalize(x, L2NormalizeOptions{axis, epsilon});
}
/// x / |x|, where |x| is sum(|x|) (p = 1) or sqrt(sum(x^2)) (p = 2) along `axis`. Zeros where the norm is 0, with a
/// gradient of 0. InvalidArgument for other p.
Tensor lp_normalize(const Tensor& x, int p = 2, int axis = -1);
/// Options of lp_normalize.
struct LpNormalizeOptions {
  int p = 2;      // order of the norm, 1 or 2
  int axis = -1;  // axis of the norm
};
inline Tensor lp_normalize(const Tensor& x, LpNormalizeOptions options) {
  return lp_normalize(x, options.p, options.axis);
}

}  // namespace gradus
