/// ONNX's normalisations.
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/shape.h"

namespace gradus::onnx {
namespace {

/// A parameter in the dtype of x: mixed types are allowed since 14 and 15.
Tensor like(const Tensor& parameter, const Tensor& x) {
  return parameter.defined() ? cast(parameter, x.dtype()) : parameter;
}

/// Outputs y, then in training the moved averages, and before 14 mean and variance of the batch.
Results batch_norm(const Call& c) {
  const Tensor& x = c[0];
  c.require(x.shape().rank() >= 2, "X is ", x.spec(), ", it must be [batch, channels, ...]");
  c.require(c.version() >= 9 || c.flag("spatial", true), "spatial = 0, statistics of each place, is not supported");
  ChannelNormalizationOptions options{
      .scale = like(c[1], x), .offset = like(c[2], x), .axis = 1, .epsilon = c.number("epsilon", 1e-5)};
  const bool training = c.version() >= 14  ? c.flag("training_mode")
                        : c.version() >= 7 ? c.wants(1)
                                           : !c.flag("is_test");
  if (!training) return batch_normalization(x, like(c[3], x), like(c[4], x), options);
  std::vector<int> axes{0};
  for (int i = 2; i < x.shape().rank(); ++i) axes.push_back(i);
  const Moments batch = moments(x, {.axis = axes});
  const double momentum = c.number("momentum", 0.9);
  const auto moved = [&](const Tensor& before, const Tensor& now) {
    return before * momentum + like(now, before) * (1 - momentum);
  };
  return {batch_normalization(x, batch.mean, batch.variance, options), moved(c[3], batch.mean),
          moved(c[4], batch.variance), batch.mean, batch.variance};
}

Results instance_norm(const Call& c) {
  return instance_normalization(c[0], {.scale = c[1], .offset = c[2], .axis = 1, .epsilon = c.number("epsilon", 1e-5)});
}

/// Before 21 scale and offset are those of groups.
Results group_norm(const Call& c) {
  const Tensor& x = c[0];
  const std::int64_t groups = c.integer("num_groups");
  c.require(x.shape().rank() >= 2, "X is ", x.spec(), ", it must be [batch, channels, ...]");
  const std::int64_t channels = x.shape()[1];
  c.require(groups > 0 && channels >= 0 && channels % groups == 0, "num_groups is ", groups,
            ", which does not divide the channels of X, ", x.spec());
  const auto of_channels = [&](const Tensor& parameter) {
    if (c.version() >= 21) return parameter;
    c.require(parameter.shape() == Shape{groups}, "scale or bias is ", parameter.spec(), ", it must be [", groups, "]");
    return reshape(broadcast_to(expand_dims(parameter, 1), {groups, channels / groups}), {channels});
  };
  return group_normalization(
      x, groups,
      {.scale = of_channels(c[1]), .offset = of_channels(c[2]), .axis = 1, .epsilon = c.number("epsilon", 1e-5)});
}

/// All axes from `axis` on.
std::vector<int> axes_from(const Call& c, const Tensor& x) {
  c.require(x.shape().rank() >= 1, "X is a scalar, it has no axis");
  std::vector<int> axes;
  for (int i = c.axis(c.integer("axis", -1), x.shape().rank()); i < x.shape().rank(); ++i) axes.push_back(i);
  return axes;
}

/// The mean and 1 / deviation are in the type of stash_type, but in f64 where X is.
Results layer_norm(const Call& c) {
  const Tensor& x = c[0];
  const std::vector<int> axes = axes_from(c, x);
  const double epsilon = c.number("epsilon", 1e-5);
  Results results{layer_normalization(
      x, {.scale = like(c[1], x), .offset = like(c.optional(2), x), .axis = axes, .epsilon = epsilon})};
  if (!c.wants(1) && !c.wants(2)) return results;
  const ReduceOptions over{.axis = axes, .keepdims = true};
  const DType stash = x.dtype() == f64 ? f64 : c.dtype("stash_type", f32);
  results.push_back(cast(reduce_mean(x, over), stash));
  results.push_back(cast(rsqrt(reduce_variance(x, over) + epsilon), stash));
  return results;
}

/// The result has the dtype of the scale.
Results rms_norm(const Call& c) {
  const Tensor& x = c[0];
  const Tensor y =
      rms_normalization(x, {.scale = like(c[1], x), .axis = axes_from(c, x), .epsilon = c.number("epsilon", 1e-5)});
  return cast(y, c[1].dtype());
}

/// The neighbours lie more to the right where `size` is even.
Results local_response(const Call& c) {
  const std::int64_t size = c.integer("size");
  c.require(size >= 1, "size is ", size, ", it must be positive");
  c.require(c[0].shape().rank() >= 2, "X is ", c[0].spec(), ", it must be [batch, channels, ...]");
  const std::int64_t channels = c[0].shape()[1];
  c.require(channels >= 0, "the channels of X, ", c[0].spec(), ", must be known");
  return local_response_normalization(c[0], {.depth_radius = (size - 1) / 2,
                                             .depth_after = size / 2,
                                             .bias = c.number("bias", 1),
                                             .alpha = c.number("alpha", 1e-4) / static_cast<double>(size),
                                             .beta = c.number("beta", 0.75),
                                             .axis = 1});
}

Results mean_variance(const Call& c) {
  return mean_variance_normalization(c[0], c.axes(c.integers("axes", {0, 2, 3}), c[0].shape().rank()));
}

const Table norm_table{
    {"BatchNormalization", {6, 7, 9, 14, 15}, rounded_once(batch_norm, {0, 3, 4})},
    {"GroupNormalization", {18, 21}, rounded_once(group_norm)},
    {"InstanceNormalization", {6, 22}, rounded_once(instance_norm)},
    {"LRN", {1, 13}, rounded_once(local_response)},
    {"LayerNormalization", {17}, rounded_once(layer_norm, {0, as_computed})},
    {"MeanVarianceNormalization", {9, 13}, rounded_once(mean_variance)},
    {"RMSNormalization", {23}, rounded_once(rms_norm, {1})},
};

}  // namespace
}  // namespace gradus::onnx
