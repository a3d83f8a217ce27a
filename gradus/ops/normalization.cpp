/// Normalisations as composites: gradients of every order follow from their parts.
#include "gradus/ops/normalization.h"
#include <algorithm>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

void check_input(std::string_view op, const Tensor& x, double epsilon) {
  require(is_floating(x.dtype()), op, ": expected floats, got ", x.spec(), "; cast(x, f32) first");
  require(x.shape().rank() > 0, op, ": ", x.spec(), " has no axis");
  require(epsilon >= 0, op, ": epsilon must not be negative, got ", epsilon);
}

/// `parameter`, wide, with 1 for the dimensions of x that are not in `axes`; empty stays empty.
Tensor along(std::string_view op, std::string_view which, const Tensor& parameter, const Tensor& x,
             const std::vector<int>& axes) {
  if (!parameter.defined()) return {};
  require(parameter.dtype() == x.dtype() || parameter.dtype() == computed_in(x.dtype()), op, ": ", which, " is ",
          parameter.spec(), ", expected the dtype of x, ", x.spec(), "; cast one of them");
  Shape own, spread;
  for (int i = 0; i < x.shape().rank(); ++i) {
    const bool named = std::ranges::find(axes, i) != axes.end();
    spread.push_back(named ? x.shape()[i] : 1);
    if (named) own.push_back(x.shape()[i]);
  }
  const Tensor p = cast(parameter, computed_in(x.dtype()));
  if (p.shape() == own) return reshape(p, spread);
  bool fits = p.shape().rank() <= x.shape().rank();
  for (int i = 1; fits && i <= p.shape().rank(); ++i) fits = p.shape()[-i] == 1 || p.shape()[-i] == x.shape()[-i];
  require(fits, op, ": ", which, " is ", parameter.spec(), ", expected ", brackets(own), " for x, ", x.spec());
  return p;
}

std::vector<int> normalized_axes(std::string_view op, const Tensor& x, const std::vector<int>& axes) {
  std::vector<int> all;
  for (int axis : axes) {
    all.push_back(x.shape().normalized(axis));
    require(std::ranges::count(all, all.back()) == 1, op, ": axis ", axis, " of ", x.spec(), " is named twice");
  }
  require(!all.empty(), op, ": expected at least one axis");
  return all;
}

Tensor scaled(Tensor y, const Tensor& scale, const Tensor& offset) {
  if (scale.defined()) y = y * scale;
  return offset.defined() ? y + offset : y;
}

/// `mask`, of the first dimensions of x, for each element of x.
Tensor counted(std::string_view op, const Tensor& mask, const Tensor& x) {
  const int rank = x.shape().rank();
  bool fits = mask.dtype() == boolean && mask.shape().rank() <= rank;
  for (int i = 0; fits && i < mask.shape().rank(); ++i) fits = mask.shape()[i] == 1 || mask.shape()[i] == x.shape()[i];
  require(fits, op, ": mask is ", mask.spec(), ", expected booleans of the first dimensions of ", x.spec());
  Tensor each = mask;
  while (each.shape().rank() < rank) each = expand_dims(each, -1);
  return broadcast_to(each, x.shape());
}

/// The mean of what counts; of nothing 0.
Tensor mean_where(const Tensor& counts, const Tensor& x, const std::vector<int>& axes) {
  const ReduceOptions over{.axis = axes, .keepdims = true};
  return divide_no_nan(reduce_sum(where(counts, x, fill_like(x, 0)), over), reduce_sum(cast(counts, x.dtype()), over));
}

Tensor centred_and_scaled(std::string_view op, const Tensor& x, const std::vector<int>& axes, double epsilon,
                          const Tensor& mask) {
  if (!mask.defined()) {
    const Moments m = moments(x, {.axis = axes, .keepdims = true});
    return (x - m.mean) * rsqrt(m.variance + epsilon);
  }
  const Tensor counts = counted(op, mask, x), kept = where(counts, x, fill_like(x, 0));
  const Tensor centred = kept - mean_where(counts, kept, axes);
  return centred * rsqrt(mean_where(counts, square(centred), axes) + epsilon);
}

/// All axes but the first and `channels`.
std::vector<int> inner_axes(const Tensor& x, int channels) {
  std::vector<int> axes;
  for (int i = 1; i < x.shape().rank(); ++i)
    if (i != channels) axes.push_back(i);
  return axes;
}

int channel_axis(std::string_view op, const Tensor& x, int axis) {
  const int channels = x.shape().normalized(axis);
  require(x.shape().rank() >= 2 && channels > 0, op, ": expected [batch, ...] with channels at axis ", axis, ", got ",
          x.spec());
  return channels;
}

/// x0 + x1 + ... of the elements within `before` and `after` along `axis`.
Tensor sum_of_neighbours(const Tensor& x, int axis, std::int64_t before, std::int64_t after) {
  const std::int64_t n = x.shape()[axis];
  const std::int64_t others = std::max<std::int64_t>(n - 1, 0);
  if (SizeChoice::choose(n >= 0 && others < std::max(before, after)) && n >= 0) {
    before = std::min(before, others);
    after = std::min(after, others);
  }
  std::vector<std::array<std::int64_t, 2>> paddings(static_cast<std::size_t>(x.shape().rank()), {0, 0});
  paddings[static_cast<std::size_t>(axis)] = {before, after};
  const Tensor padded = pad(x, paddings);
  Tensor sum = slice_within(padded, axis, 0, n);
  for (std::int64_t i = 1; i <= before + after; ++i) sum = sum + slice_within(padded, axis, i, n);
  return sum;
}

}  // namespace

Moments moments(const Tensor& x, ReduceOptions options) {
  const Tensor w = widened(x);
  return {cast(reduce_mean(w, options), x.dtype()), cast(reduce_variance(w, options), x.dtype())};
}

Tensor batch_normalization(const Tensor& x, const Tensor& mean, const Tensor& variance,
                           ChannelNormalizationOptions options) {
  check_options("batch_normalization", options);
  constexpr std::string_view op = "batch_normalization";
  check_input(op, x, options.epsilon);
  require(!options.mask.defined(), op, ": the moments are given; a mask belongs where they are found");
  const std::vector<int> axis{x.shape().normalized(options.axis)};
  const auto parameter = [&](std::string_view which, const Tensor& p) { return along(op, which, p, x, axis); };
  const Tensor centre = parameter("mean", mean), spread = parameter("variance", variance);
  Tensor factor = rsqrt(spread + options.epsilon);
  if (options.scale.defined()) factor = factor * parameter("scale", options.scale);
  // (x - a) f + (a - c) f is (x - c) f for every a. That a is c makes the second part 0, but takes the gradient of c
  // from the sum that the offset's is, instead of from one of its own over all of x.
  const Tensor a = stop_gradient(centre), offset = parameter("offset", options.offset);
  const Tensor shift = where(is_finite(factor), (a - centre) * factor, zeros_like(factor));
  return cast((widened(x) - a) * factor + (offset.defined() ? offset + shift : shift), x.dtype());
}

Tensor instance_normalization(const Tensor& x, ChannelNormalizationOptions options) {
  check_options("instance_normalization", options);
  constexpr std::string_view op = "instance_normalization";
  check_input(op, x, options.epsilon);
  const int channels = channel_axis(op, x, options.axis);
  const std::vector<int> inner = inner_axes(x, channels);
  require(!inner.empty(), op, ": ", x.spec(), " has no axis beside batch and channels");
  const Tensor y = centred_and_scaled(op, widened(x), inner, options.epsilon, options.mask);
  return cast(
      scaled(y, along(op, "scale", options.scale, x, {channels}), along(op, "offset", options.offset, x, {channels})),
      x.dtype());
}

Tensor group_normalization(const Tensor& x, std::int64_t groups, ChannelNormalizationOptions options) {
  check_options("group_normalization", options);
  constexpr std::string_view op = "group_normalization";
  check_input(op, x, options.epsilon);
  const int channels = channel_axis(op, x, options.axis);
  const std::int64_t n = x.shape()[channels];
  require(groups > 0 && n >= 0 && n % groups == 0, op, ": expected a number of groups that divides the channels of ",
          x.spec(), ", ", dimension::to_text(n), ", got ", groups);
  Shape grouped = x.shape();
  grouped.set(channels, groups);
  grouped.insert(channels + 1, n / groups);
  const Tensor parts = reshape(widened(x), grouped);
  require(!options.mask.defined() || options.mask.shape().rank() <= channels, op, ": the mask ",
          options.mask.defined() ? text(options.mask.spec()) : "", " reaches to the channels of ", x.spec(), ", axis ",
          channels);
  const Tensor y =
      reshape(centred_and_scaled(op, parts, inner_axes(parts, channels), options.epsilon, options.mask), x.shape());
  return cast(
      scaled(y, along(op, "scale", options.scale, x, {channels}), along(op, "offset", options.offset, x, {channels})),
      x.dtype());
}

Tensor layer_normalization(const Tensor& x, LayerOptions options) {
  check_options("layer_normalization", options);
  constexpr std::string_view op = "layer_normalization";
  check_input(op, x, options.epsilon);
  const std::vector<int> axes = normalized_axes(op, x, options.axis);
  const Tensor y = centred_and_scaled(op, widened(x), axes, options.epsilon, options.mask);
  return cast(scaled(y, along(op, "scale", options.scale, x, axes), along(op, "offset", options.offset, x, axes)),
              x.dtype());
}

Tensor rms_normalization(const Tensor& x, LayerOptions options) {
  check_options("rms_normalization", options);
  constexpr std::string_view op = "rms_normalization";
  check_input(op, x, options.epsilon);
  const std::vector<int> axes = normalized_axes(op, x, options.axis);
  const Tensor counts = options.mask.defined() ? counted(op, options.mask, x) : Tensor();
  const Tensor w = counts.defined() ? where(counts, widened(x), fill_like(widened(x), 0)) : widened(x);
  const Tensor squares =
      counts.defined() ? mean_where(counts, square(w), axes) : reduce_mean(square(w), {.axis = axes, .keepdims = true});
  const Tensor y = w * rsqrt(squares + options.epsilon);
  return cast(scaled(y, along(op, "scale", options.scale, x, axes), along(op, "offset", options.offset, x, axes)),
              x.dtype());
}

Tensor local_response_normalization(const Tensor& x, LocalResponseOptions options) {
  check_options("local_response_normalization", options);
  constexpr std::string_view op = "local_response_normalization";
  check_input(op, x, 0);
  const std::int64_t before = options.depth_radius, after = options.depth_after.value_or(before);
  require(before >= 0 && after >= 0, op, ": numbers of neighbours must not be negative, got ", before, " and ", after);
  const Tensor w = widened(x);
  const Tensor sum = sum_of_neighbours(square(w), x.shape().normalized(options.axis), before, after);
  return cast(w * pow(sum * options.alpha + options.bias, -options.beta), x.dtype());
}

Tensor mean_variance_normalization(const Tensor& x, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  constexpr std::string_view op = "mean_variance_normalization";
  check_input(op, x, 0);
  const ReduceOptions over{.axis = normalized_axes(op, x, axis), .keepdims = true};
  const Tensor w = widened(x);
  return cast((w - reduce_mean(w, over)) / (reduce_std(w, over) + 1e-9), x.dtype());
}

Tensor l2_normalize(const Tensor& x, const L2NormalizeOptions& options) {
  const auto& [axis, epsilon] = options;
  check_input("l2_normalize", x, epsilon);
  const Tensor w = widened(x);
  return cast(w * rsqrt(maximum(reduce_sum(square(w), {.axis = axis, .keepdims = true}), epsilon)), x.dtype());
}

Tensor lp_normalize(const Tensor& x, int p, int axis) {
  check_input("lp_normalize", x, 0);
  require(p == 1 || p == 2, "lp_normalize: p must be 1 or 2, got ", p);
  const Tensor w = widened(x);
  const ReduceOptions over{.axis = {axis}, .keepdims = true};
  const Tensor length = p == 1 ? reduce_sum(abs(w), over) : norm(w, over);
  const Tensor none = equal(length, fill_like(length, 0));
  return cast(where(none, fill_like(w, 0), w / where(none, fill_like(length, 1), length)), x.dtype());
}

}  // namespace gradus
