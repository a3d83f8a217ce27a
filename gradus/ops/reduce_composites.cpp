/// Composites of reductions.
#include "gradus/ops/reduce.h"
#include <cmath>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/index_types.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_bounds.h"

namespace gradus {
namespace {

/// x^exponent for x >= 0, 0 with gradients 0 where x is 0.
Tensor flat_power(const Tensor& x, double exponent) {
  const Tensor zero = fill_like(x, 0), at_zero = equal(x, zero);
  return where(at_zero, zero, pow(where(at_zero, fill_like(x, 1), x), exponent));
}

template <class Find> Tensor index_of(std::string_view op, const Tensor& x, const ArgOptions& options, Find find) {
  const int at = checked_axis(x, options.axis, op);
  const std::int64_t n = x.shape()[at];
  const DType found = index_type(op, options.output_type, n == 0 ? 0 : dimension::subtract(n, 1));
  Tensor index = find(options.select_last_index ? reverse(x, {at}) : x, at, found);
  if (options.select_last_index) index = extent(n, found) - 1 - index;
  if (options.keepdims) index = expand_dims(index, at);
  return cast(index, options.output_type);
}

/// compare(later, earlier) of all neighbours.
Tensor neighbours(std::string_view op, const Tensor& x, Tensor (*compare)(const Tensor&, const Tensor&)) {
  require(x.dtype() != boolean, op, ": expected numbers, got ", x.spec(), "; cast it first");
  const std::int64_t n = x.shape().size();
  if (n == 0 || n == 1) return fill({}, 1, boolean);
  const std::int64_t pairs = dimension::subtract(n, 1);
  require_not_negative(pairs, [&] { return text(op, ": ", x.spec(), " has no elements"); });
  const Tensor flat = reshape(x, {n});
  return reduce_all(compare(slice_within(flat, 0, 1, pairs), slice_within(flat, 0, 0, pairs)));
}

}  // namespace

Tensor norm(const Tensor& x, double ord, ReduceOptions options) {
  const HostFloats floats;
  require_floating(x, "norm");
  require(ord > 0, "norm: ord must be positive, got ", ord);
  if (ord == 2) return norm(x, options);
  if (is_narrow(x.dtype())) return in_f32(x, [&](const Tensor& wide) { return norm(wide, ord, options); });
  if (ord == 1) return reduce_sum(abs(x), options);
  if (std::isinf(ord)) return reduce_max(abs(x), options);
  return flat_power(reduce_sum(flat_power(abs(x), ord), options), 1 / ord);
}

Tensor reduce_euclidean_norm(const Tensor& x, ReduceOptions options) {
  return norm(require_floating(x, "reduce_euclidean_norm"), options);
}

Tensor count_nonzero(const Tensor& x, ReduceOptions options) {
  return reduce_sum(cast(not_equal(x, fill_like(x, 0)), i64), options);
}

Tensor zero_fraction(const Tensor& x) { return reduce_mean(cast(equal(x, fill_like(x, 0)), f32)); }

Tensor argmax(const Tensor& x, ArgOptions options) { return index_of("argmax", x, options, argmax_as); }
Tensor argmin(const Tensor& x, ArgOptions options) { return index_of("argmin", x, options, argmin_as); }

Tensor hardmax(const Tensor& x, int axis) {
  require_floating(x, "hardmax");
  const int at = checked_axis(x, axis, "hardmax");
  if (x.shape()[at] == 0) return x;
  Shape along;
  for (int i = 0; i < x.shape().rank(); ++i) along.push_back(i == at ? x.shape()[i] : 1);
  const DType t = index_type("hardmax", i64, dimension::subtract(x.shape()[at], 1));
  const Tensor index = broadcast_to(reshape(iota({x.shape()[at]}, t), along), x.shape());
  const Tensor largest = broadcast_to(expand_dims(argmax_as(x, at, t), at), x.shape());
  return cast(equal(index, largest), x.dtype());
}

Tensor in_top_k(const Tensor& targets, const Tensor& predictions, std::int64_t k) {
  require_floating(predictions, "in_top_k");
  checked_axis(predictions, -1, "in_top_k");
  Shape places = predictions.shape();
  places.erase(-1);
  require(is_integer(targets.dtype()) && targets.shape() == places, "in_top_k: targets is ", targets.spec(),
          ", expected one integer for each row of ", predictions.spec());
  const Tensor classes = iota({predictions.shape().back()}, i64);
  const Tensor chosen = equal(classes, expand_dims(cast(targets, i64), -1));
  const Tensor own = reduce_sum(where(chosen, predictions, 0), {.axis = {-1}});
  const Tensor larger = reduce_sum(cast(predictions > expand_dims(own, -1), i64), {.axis = {-1}});
  return logical_and(logical_and(reduce_any(chosen, {.axis = {-1}}), is_finite(own)), larger < k);
}

Tensor is_non_decreasing(const Tensor& x) {
  return neighbours("is_non_decreasing", x, [](const Tensor& a, const Tensor& b) { return a >= b; });
}
Tensor is_strictly_increasing(const Tensor& x) {
  return neighbours("is_strictly_increasing", x, [](const Tensor& a, const Tensor& b) { return a > b; });
}

}  // namespace gradus
