/// Composites of sums, windows and maxima.
#include "gradus/ops/tensorflow_names.h"
#include <algorithm>
#include <limits>
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// How many elements of x become one.
Tensor count_of(const Tensor& x, const ReduceOptions& options) {
  return reduce_sum(ones_like(x), {.axis = options.axis, .keepdims = true});
}

Tensor kept_or_not(const Tensor& x, const ReduceOptions& options) {
  if (options.keepdims) return x;
  if (options.axis.empty()) return reshape(x, {});
  return squeeze(x, options.axis);
}

/// The number of dimension `which` of two, given none, one or both.
std::int64_t number_of(std::string_view op, const std::vector<std::int64_t>& numbers, std::size_t which) {
  require(numbers.size() <= 2, op, ": ", numbers.size(), " numbers for two dimensions");
  const std::int64_t number = numbers.empty() ? 1 : numbers[numbers.size() == 1 ? 0 : which];
  require(number > 0, op, ": strides and dilations must be positive, got ", number);
  return number;
}

Tensor dilated(std::string_view op, const Tensor& x, const Tensor& filters, const DilationOptions& options) {
  require_floating(x, filters, op);
  require(x.shape().rank() == 4 && filters.shape().rank() == 3 && x.shape()[3] == filters.shape()[2], op, ": x is ",
          x.spec(), ", filters are ", filters.spec(), ", expected [batch, height, width, C] and [rows, columns, C]");
  Sizes sizes, strides, rates;
  std::vector<std::array<std::int64_t, 2>> paddings(4, {0, 0});
  for (std::size_t i = 0; i < 2; ++i) {
    const int axis = static_cast<int>(i);
    const std::int64_t n = x.shape()[axis + 1], k = filters.shape()[axis];
    require(n > 0 && k > 0, op, ": height and width of ", x.spec(), " and of ", filters.spec(),
            " must be known and positive");
    sizes.push_back(k);
    strides.push_back(number_of(op, options.strides, i));
    rates.push_back(number_of(op, options.dilations, i));
    if (options.padding == Padding::valid) continue;
    const std::int64_t windows = (n + strides[i] - 1) / strides[i];
    const std::int64_t missing = std::max<std::int64_t>(0, (windows - 1) * strides[i] + (k - 1) * rates[i] + 1 - n);
    paddings[i + 1] = {missing / 2, missing - missing / 2};
  }
  const DType wide = computed_in(x.dtype());
  const Tensor padded = pad(cast(x, wide), paddings, -std::numeric_limits<double>::infinity());
  const Tensor patches = extract_patches(padded, sizes, {.strides = strides, .rates = rates});
  Shape taps = patches.shape();
  taps.set(-1, sizes[0] * sizes[1]);
  taps.push_back(x.shape()[3]);
  const Tensor filter = reshape(cast(filters, wide), {sizes[0] * sizes[1], x.shape()[3]});
  return cast(reduce_max(reshape(patches, taps) + filter, {.axis = {-2}}), x.dtype());
}

}  // namespace

Normalized normalize(const Tensor& x, double ord, const std::vector<int>& axis) {
  const Tensor wide = widened(x), size = norm(wide, ord, {.axis = axis, .keepdims = true});
  return {cast(wide / size, x.dtype()), cast(size, x.dtype())};
}

Moments weighted_moments(const Tensor& x, const Tensor& weights, ReduceOptions options) {
  require_floating(x, weights, "weighted_moments");
  const Tensor values = widened(x), shares = broadcast_together(values, widened(weights), "weighted_moments").second;
  require(shares.shape() == x.shape(), "weighted_moments: weights ", weights.spec(), " do not broadcast to ", x.spec());
  const ReduceOptions kept{.axis = options.axis, .keepdims = true};
  const Tensor total = reduce_sum(shares, kept), mean = reduce_sum(values * shares, kept) / total;
  const Tensor variance = reduce_sum(square(values - mean) * shares, kept) / total;
  return {.mean = cast(kept_or_not(mean, options), x.dtype()),
          .variance = cast(kept_or_not(variance, options), x.dtype())};
}

SufficientStatistics sufficient_statistics(const Tensor& x, ReduceOptions options, const Tensor& shift) {
  require_floating(x, "sufficient_statistics");
  const Tensor from = shift.defined() ? widened(x) - widened(shift) : widened(x);
  return {.count = kept_or_not(count_of(x, options), options),
          .mean = cast(reduce_sum(from, options), x.dtype()),
          .variance = cast(reduce_sum(square(from), options), x.dtype()),
          .shift = shift};
}

Moments normalize_moments(const SufficientStatistics& statistics) {
  const Tensor share = reciprocal(statistics.count), mean = statistics.mean * share;
  const Tensor variance = statistics.variance * share - square(mean);
  return {.mean = statistics.shift.defined() ? mean + statistics.shift : mean, .variance = variance};
}

Tensor dilation2d(const Tensor& x, const Tensor& filters, const DilationOptions& options) {
  return dilated("dilation2d", x, filters, options);
}

Tensor erosion2d(const Tensor& x, const Tensor& filters, const DilationOptions& options) {
  require(filters.shape().rank() == 3, "erosion2d: filters are ", filters.spec(), ", expected [rows, columns, C]");
  return -dilated("erosion2d", -x, reverse(filters, {0, 1}), options);
}

}  // namespace gradus
