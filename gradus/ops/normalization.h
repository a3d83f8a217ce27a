/// Normalisations. All take floats; types narrower than f32 are computed in f32 and rounded once. Variances are biased
/// (divided by n) and found in two passes, so they are never negative; gradients of every order go through them.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/ops/reduce.h"

namespace gradus {

struct Moments {
  Tensor mean, variance;
};
/// Mean and biased variance over the axes that are named, or all. Of nothing: NaN.
Moments moments(const Tensor& x, ReduceOptions options = {});

/// `scale` and `offset` are empty (1 and 0) or [n], n the extent of `axis`, in the dtype of x. `mask` is empty, or bool
/// [first dimensions of x]: places where it is false are left out of the moments and count as 0.
struct ChannelNormalizationOptions {
  Tensor scale = {}, offset = {};
  int axis = -1;
  double epsilon = 1e-3;
  Tensor mask = {};
  static constexpr auto ranges() { return std::array{Allowed::any("axis"), Allowed::not_negative("epsilon")}; }
};
/// (x - mean) / sqrt(variance + epsilon) * scale + offset. x: T[...], mean, variance: [n], n the extent of `axis`:
/// moving averages in inference, moments(x) over all other axes in training. It takes no mask.
Tensor batch_normalization(const Tensor& x, const Tensor& mean, const Tensor& variance,
                           ChannelNormalizationOptions options = {});
/// Each example and channel by its own moments over the other axes (Ulyanov et al. 2016). x: [batch, ...], channels at
/// `axis`.
Tensor instance_normalization(const Tensor& x, ChannelNormalizationOptions options = {});
/// Each example by the moments of `groups` groups of neighbouring channels (Wu and He 2018). x: [batch, ...], channels
/// at `axis`, a multiple of `groups`; 1 group is the whole example.
Tensor group_normalization(const Tensor& x, std::int64_t groups, ChannelNormalizationOptions options = {});

/// `scale` and `offset` are empty, or have the extents of `axis` as their shape, or one that broadcasts to x.
struct LayerOptions {
  Tensor scale = {}, offset = {};
  std::vector<int> axis = {-1};
  double epsilon = 1e-3;
  Tensor mask = {};  // as above
  static constexpr auto ranges() { return std::array{Allowed::any("axis"), Allowed::not_negative("epsilon")}; }
};
/// (x - mean) / sqrt(variance + epsilon) * scale + offset, moments over `axis` (Ba et al. 2016).
Tensor layer_normalization(const Tensor& x, LayerOptions options = {});
/// x / sqrt(mean(x^2) + epsilon) * scale + offset, the mean over `axis` (Zhang and Sennrich 2019).
Tensor rms_normalization(const Tensor& x, LayerOptions options = {});

struct LocalResponseOptions {
  std::int64_t depth_radius = 5;                 // channels before each
  std::optional<std::int64_t> depth_after = {};  // channels after each; else as many
  double bias = 1, alpha = 1, beta = 0.5;
  int axis = -1;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("depth_radius depth_after"), Allowed::finite("bias alpha beta"),
                      Allowed::any("axis")};
  }
};
/// x / (bias + alpha * sum of the squares of neighbouring channels)^beta (Krizhevsky et al. 2012).
Tensor local_response_normalization(const Tensor& x, LocalResponseOptions options = {});

/// (x - mean) / (standard deviation + 1e-9) over the axes, as ONNX's MeanVarianceNormalization. Where the deviation is
/// 0 its gradient is.
Tensor mean_variance_normalization(const Tensor& x, const std::vector<int>& axis = {0, 2, 3});

/// x / sqrt(max(sum(x^2), epsilon)) along the axes that are named, or all.
Tensor l2_normalize(const Tensor& x, const std::vector<int>& axis = {}, double epsilon = 1e-12);
/// x / |x|, |x| = sum(|x|) (p = 1) or sqrt(sum(x^2)) (p = 2) along `axis`; zeros where the norm is 0, with a gradient
/// of 0. InvalidArgument for other p.
Tensor lp_normalize(const Tensor& x, int p = 2, int axis = -1);

}  // namespace gradus
