/// Order statistics, products of vectors, and functions of NumPy.
#include "gradus/ops/numeric.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_bounds.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

const Tensor& require_numbers(const Tensor& x, std::string_view op) {
  require(x.dtype() != boolean, op, ": expected numbers, got ", x.spec(), "; cast it first");
  return x;
}

/// The elements of all `axis` (none: all) behind each other as the last dimension.
Tensor gathered_last(const Tensor& x, const std::vector<int>& axis, std::string_view op, Shape& kept) {
  std::vector<int> order, behind = axis;
  for (int& a : behind) a = x.shape().normalized(a);
  if (behind.empty())
    for (int i = 0; i < x.shape().rank(); ++i) behind.push_back(i);
  std::ranges::sort(behind);
  require(std::ranges::adjacent_find(behind) == behind.end(), op, ": an axis is named twice");
  kept = x.shape();
  Shape left;
  std::int64_t count = 1;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (std::ranges::binary_search(behind, i)) {
      require(x.shape()[i] > 0, op, ": axis ", i, " of ", x.spec(), " must have a known, positive size");
      count *= x.shape()[i];
      kept.set(i, 1);
    } else {
      order.push_back(i);
      left.push_back(x.shape()[i]);
    }
  }
  order.insert(order.end(), behind.begin(), behind.end());
  left.push_back(count);
  return reshape(transpose(x, order), left);
}

/// The value at a fractional place among `n` in order along the last axis.
Tensor at_place(const Tensor& sorted, double place, QuantileMethod method) {
  const auto at = [&](double i) { return slice_within(sorted, sorted.shape().rank() - 1, std::llrint(i), 1); };
  const double below = std::floor(place), above = std::ceil(place);
  switch (method) {
    case QuantileMethod::lower: return at(below);
    case QuantileMethod::higher: return at(above);
    case QuantileMethod::nearest: return at(std::nearbyint(place));
    case QuantileMethod::midpoint: return below == above ? at(below) : (at(below) + at(above)) * 0.5;
    case QuantileMethod::linear: break;
  }
  if (below == above) return at(below);
  return at(below) * (above - place) + at(above) * (place - below);
}

}  // namespace

Tensor hypot(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("hypot", left, right);
  return in_computed_dtype("hypot", a, b, [](const Tensor& x, const Tensor& y) {
    const Tensor larger = maximum(abs(x), abs(y)), smaller = minimum(abs(x), abs(y));
    const Tensor has_ratio = logical_and(not_equal(larger, 0), logical_not(is_inf(larger)));  // NaN stays
    const Tensor ratio = where(has_ratio, smaller / where(has_ratio, larger, 1), 0);
    const Tensor length = larger * sqrt(square(ratio) + 1);
    return where(logical_or(is_inf(x), is_inf(y)), std::numeric_limits<double>::infinity(), length);
  });
}

Tensor logaddexp2(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("logaddexp2", left, right);
  return in_computed_dtype("logaddexp2", a, b, [](const Tensor& x, const Tensor& y) {
    return logaddexp(x * std::numbers::ln2, y * std::numbers::ln2) / std::numbers::ln2;
  });
}

Tensor sinc(const Tensor& x) {
  const HostFloats floats;
  require_floating(x, "sinc");
  return in_computed_dtype(x, [](const Tensor& w) {
    // Beyond this size every number is whole, and the sine is 0.
    const Tensor is_whole = abs(w) >= (w.dtype() == f64 ? 0x1p53 : 0x1p24);
    const Tensor y = where(is_whole, 0, w) * std::numbers::pi, is_near = abs(y) < 0.5;
    // sin(y) / y = 1 - y^2 / 3! + y^4 / 5! - ..., so that derivatives at 0 are right.
    const Tensor square_of = square(where(is_near, y, 0));
    Tensor series = ones_like(y);
    for (int k = 8; k > 0; --k) series = 1 - square_of * (1.0 / (2 * k * (2 * k + 1))) * series;
    const Tensor divisor = where(is_near, 1, y);
    return where(is_whole, 0, where(is_near, series, sin(divisor) / divisor));
  });
}

Tensor heaviside(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [x, at_zero] = side_by_side("heaviside", left, right);
  require_floating(x, at_zero, "heaviside");
  const auto [a, b] = broadcast_together(x, at_zero, "heaviside");
  const Tensor steps = where(a > 0, ones_like(a), where(a < 0, zeros_like(a), stop_gradient(a)));
  return where(equal(a, 0), b, steps);
}

Tensor fmax(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("fmax", left, right);
  require_numbers(a, "fmax");
  if (!is_floating(a.dtype())) return maximum(a, b);
  require_floating(a, b, "fmax");
  const auto [x, y] = broadcast_together(a, b, "fmax");
  return where(is_nan(x), y, where(is_nan(y), x, maximum(x, y)));
}
Tensor fmin(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("fmin", left, right);
  require_numbers(a, "fmin");
  if (!is_floating(a.dtype())) return minimum(a, b);
  require_floating(a, b, "fmin");
  const auto [x, y] = broadcast_together(a, b, "fmin");
  return where(is_nan(x), y, where(is_nan(y), x, minimum(x, y)));
}

Tensor nan_to_num(const Tensor& x, NanToNumOptions options) {
  require_floating(x, "nan_to_num");
  const double largest = x.dtype() == f64    ? std::numeric_limits<double>::max()
                         : x.dtype() == f16  ? 65504
                         : x.dtype() == bf16 ? 0x1.fep127
                                             : static_cast<double>(std::numeric_limits<float>::max());
  Tensor y = where(is_nan(x), scalar_like(x, options.nan, "nan_to_num"), x);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  y = where(equal(x, infinity), scalar_like(x, options.posinf.value_or(largest), "nan_to_num"), y);
  return where(equal(x, -infinity), scalar_like(x, options.neginf.value_or(-largest), "nan_to_num"), y);
}

/// By three powers, each of which is a normal number.
Tensor ldexp(const Tensor& x, const NumberOrTensor& power) {
  const Tensor exponent = power.beside(fill({}, 0, i32), "ldexp");
  require_floating(x, "ldexp");
  require(is_integer(exponent.dtype()), "ldexp: expected integers as exponents, got ", exponent.spec());
  return in_computed_dtype(x, [&](const Tensor& mantissa) {
    const double limit = mantissa.dtype() == f64 ? 2100 : 300;
    const auto [m, n] = broadcast_together(
        mantissa, cast(clip_by_value(cast(exponent, f64), -limit, limit), mantissa.dtype()), "ldexp");
    const Tensor first = trunc(n * (1.0 / 3)), second = trunc((n - first) * 0.5);
    return m * exp2(first) * exp2(second) * exp2(n - first - second);
  });
}

Tensor deg2rad(const Tensor& x) {
  return in_computed_dtype(require_floating(x, "deg2rad"),
                           [](const Tensor& w) { return w * (std::numbers::pi / 180); });
}
Tensor rad2deg(const Tensor& x) {
  return in_computed_dtype(require_floating(x, "rad2deg"),
                           [](const Tensor& w) { return w * (180 / std::numbers::pi); });
}

Tensor isclose(const NumberOrTensor& left, const NumberOrTensor& right, IsCloseOptions options) {
  const auto [a, b] = side_by_side("isclose", left, right);
  check_options("isclose", options);
  require_floating(a, b, "isclose");
  const DType t = computed_in(a.dtype());
  const Tensor x = cast(a, t), y = cast(b, t);
  const Tensor near = logical_and(is_finite(y), abs(x - y) <= abs(y) * options.rtol + options.atol);
  const Tensor close = logical_or(equal(x, y), near);
  return options.equal_nan ? logical_or(close, logical_and(is_nan(x), is_nan(y))) : close;
}

Tensor truediv(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("truediv", left, right);
  require_numbers(a, "truediv");
  require(a.dtype() == b.dtype(), "truediv: a is ", a.spec(), ", b is ", b.spec(), ": dtypes differ; cast one of them");
  if (is_floating(a.dtype())) return a / b;
  const DType t = size_of(a.dtype()) <= 2 ? f32 : f64;
  return cast(a, t) / cast(b, t);
}
Tensor truncatediv(const NumberOrTensor& left, const NumberOrTensor& right) {
  const auto [a, b] = side_by_side("truncatediv", left, right);
  require_numbers(a, "truncatediv");
  return is_floating(a.dtype()) ? trunc(a / b) : a / b;
}

Tensor saturate_cast(const Tensor& x, DType dtype) {
  const DType from = x.dtype();
  require(from != boolean && dtype != boolean, "saturate_cast: expected number types, got ", x.spec(), " to ", dtype);
  if (from == dtype) return x;
  if (is_floating(dtype) && is_floating(from)) {
    if (dtype == f64 || (dtype == f32 && from != f64)) return cast(x, dtype);
    const double largest = dtype == f16 ? 65504 : dtype == bf16 ? 0x1.fep127 : 0x1.fffffep127;
    return cast(clip_by_value(cast(x, from == f64 ? f64 : f32), -largest, largest), dtype);
  }
  if (is_floating(dtype) || is_floating(from)) return cast(x, dtype);  // which saturates
  const auto bits = [](DType t) { return static_cast<int>(8 * size_of(t)) - (is_signed(t) ? 1 : 0); };
  Tensor y = x;
  if (is_signed(from) && !is_signed(dtype)) y = maximum(y, 0);
  if (bits(dtype) < bits(from)) {
    const auto highest = static_cast<std::int64_t>((std::uint64_t{1} << bits(dtype)) - 1);
    y = minimum(y, highest);
    if (is_signed(from) && is_signed(dtype)) y = maximum(y, -highest - 1);
  }
  return cast(y, dtype);
}

Tensor cross(const Tensor& a, const Tensor& b) {
  require_numbers(a, "cross");
  require(a.spec() == b.spec() && a.shape().rank() >= 1 && a.shape().back() == 3, "cross: a is ", a.spec(), ", b is ",
          b.spec(), "; expected vectors of three along the last axis");
  const auto part = [](const Tensor& x, std::int64_t i) { return slice_within(x, x.shape().rank() - 1, i % 3, 1); };
  return in_computed_dtype(a, b, [&](const Tensor& x, const Tensor& y) {
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < 3; ++i)
      parts.push_back(part(x, i + 1) * part(y, i + 2) - part(x, i + 2) * part(y, i + 1));
    return concat(parts, -1);
  });
}

Tensor outer(const Tensor& a, const Tensor& b) {
  require_numbers(a, "outer");
  return reshape(a, {a.shape().size(), 1}) * reshape(b, {1, b.shape().size()});
}

Tensor kron(const Tensor& a, const Tensor& b) {
  require_numbers(a, "kron");
  const int rank = a.shape().rank();
  require(rank == b.shape().rank() && rank <= 4, "kron: a is ", a.spec(), ", b is ", b.spec(),
          "; expected tensors of one rank, at most 4");
  Shape of_a, of_b, merged;
  for (int i = 0; i < rank; ++i) {
    of_a.push_back(a.shape()[i]), of_a.push_back(1);
    of_b.push_back(1), of_b.push_back(b.shape()[i]);
    merged.push_back(dimension::multiply(a.shape()[i], b.shape()[i]));
  }
  return reshape(reshape(a, of_a) * reshape(b, of_b), merged);
}

Tensor vander(const Tensor& x, std::optional<std::int64_t> n, bool increasing) {
  require_numbers(x, "vander");
  require(x.shape().rank() == 1 && n.value_or(0) >= 0, "vander: expected a vector and n >= 0, got ", x.spec(), " and ",
          n.value_or(0));
  const std::int64_t m = x.shape()[0];
  return in_computed_dtype(x, [&](const Tensor& wide) {
    const Tensor rows = broadcast_to(reshape(wide, {m, 1}), {m, n.value_or(m)});
    return cumprod(rows, {.axis = 1, .exclusive = true, .reverse = !increasing});
  });
}

Tensor diff(const Tensor& x, int n, int axis) {
  require_numbers(x, "diff");
  require(n >= 0, "diff: n must not be negative, got ", n);
  const int at = checked_axis(x, axis, "diff");
  return in_computed_dtype(x, [&](Tensor y) {
    for (int k = 0; k < n; ++k) {
      const std::int64_t size = y.shape()[at];
      if (size == 0) break;
      const std::int64_t fewer = dimension::subtract(size, 1);
      require_not_negative(fewer, [&] {
        return text("diff: dimension ", at, " of ", x.spec(), " has fewer than ", k + 1, " elements");
      });
      y = slice_within(y, at, 1, fewer) - slice_within(y, at, 0, fewer);
    }
    return y;
  });
}

Tensor trapezoid(const Tensor& y, double dx, int axis) {
  const HostFloats floats;
  require_floating(y, "trapezoid");
  const int at = checked_axis(y, axis, "trapezoid");
  const std::int64_t n = y.shape()[at];
  return in_computed_dtype(y, [&](const Tensor& w) {
    if (n == 0) return reduce_sum(w, {.axis = {at}});
    const Tensor low = slice_within(w, at, 0, dimension::subtract(n, 1)),
                 high = slice_within(w, at, 1, dimension::subtract(n, 1));
    return reduce_sum(low + high, {.axis = {at}}) * (dx / 2);
  });
}

Tensor average(const Tensor& x, const Tensor& weights, std::optional<int> axis) {
  if (is_narrow(x.dtype()) && x.dtype() == weights.dtype())
    return in_computed_dtype(x, weights, [&](const Tensor& a, const Tensor& w) { return average(a, w, axis); });
  Tensor spread = weights;
  if (axis && weights.shape().rank() == 1 && x.shape().rank() > 1) {
    Shape along;
    for (int i = 0; i < x.shape().rank(); ++i)
      along.push_back(i == x.shape().normalized(*axis) ? weights.shape()[0] : 1);
    spread = broadcast_to(reshape(weights, along), x.shape());
  }
  require(spread.shape() == x.shape(), "average: x is ", x.spec(), ", the weights are ", weights.spec(),
          "; expected the shape of x, or a vector along the axis");
  const ReduceOptions over{.axis = axis ? std::vector<int>{*axis} : std::vector<int>{}};
  return in_computed_dtype("average", x, spread, [&](const Tensor& a, const Tensor& w) {
    return reduce_sum(a * w, over) / reduce_sum(w, over);
  });
}

Tensor quantile(const Tensor& x, double q, QuantileOptions options) {
  const HostFloats floats;
  require_floating(x, "quantile");
  require(q >= 0 && q <= 1, "quantile: q must lie in [0, 1], got ", q);
  return in_computed_dtype(x, [&](const Tensor& w) {
    Shape kept;
    const Tensor flat = gathered_last(w, options.axis, "quantile", kept);
    const double place = q * static_cast<double>(flat.shape().back() - 1);
    const Tensor found = at_place(sort(flat), place, options.method);
    const Tensor is_bad = reduce_any(is_nan(flat), {.axis = {-1}, .keepdims = true});
    const Tensor y = where(is_bad, std::numeric_limits<double>::quiet_NaN(), found);
    if (options.keepdims) return reshape(y, kept);
    return squeeze(y, {-1});
  });
}

Tensor median(const Tensor& x, QuantileOptions options) {
  options.method = QuantileMethod::linear;
  return quantile(x, 0.5, std::move(options));
}

Tensor moveaxis(const Tensor& x, int source, int destination) {
  const int from = checked_axis(x, source, "moveaxis"), to = checked_axis(x, destination, "moveaxis");
  std::vector<int> order;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return transpose(x, order);
}

Tensor swapaxes(const Tensor& x, int a, int b) {
  std::vector<int> order;
  for (int i = 0; i < x.shape().rank(); ++i) order.push_back(i);
  std::swap(order[static_cast<std::size_t>(checked_axis(x, a, "swapaxes"))],
            order[static_cast<std::size_t>(checked_axis(x, b, "swapaxes"))]);
  return transpose(x, order);
}

Tensor logspace(double first, double last, std::int64_t n, double base, DType dtype) {
  const HostFloats floats;
  require(is_floating(dtype) && base > 0, "logspace: expected a float type and a positive base, got ", dtype, " and ",
          base);
  return cast(pow(full({}, base, f64), linspace(first, last, n, f64)), dtype);
}

Tensor geomspace(double first, double last, std::int64_t n, DType dtype) {
  const HostFloats floats;
  require(is_floating(dtype) && first * last > 0, "geomspace: expected a float type and ends of one sign, got ", dtype,
          ", ", first, " and ", last);
  const Tensor size = exp(linspace(std::log(std::abs(first)), std::log(std::abs(last)), n, f64));
  const Tensor place = iota({n}, i64);
  const Tensor with_last = where(equal(place, n - 1), full({}, std::abs(last), f64), size);
  const Tensor with_ends = where(equal(place, 0), full({}, std::abs(first), f64), with_last);
  return cast(first < 0 ? -with_ends : with_ends, dtype);
}

Tensor unravel_index(const Tensor& indices, const Shape& dims) {
  require(is_integer(indices.dtype()) && dims.rank() > 0, "unravel_index: expected integers and dimensions, got ",
          indices.spec(), " and ", dims);
  std::vector<Tensor> places(static_cast<std::size_t>(dims.rank()));
  Tensor rest = indices;
  for (std::size_t i = places.size(); i-- > 0;) {
    const std::int64_t n = dims[static_cast<int>(i)];
    require(n > 0, "unravel_index: the dimensions ", dims, " must be known and positive");
    places[i] = i == 0 ? rest : mod(rest, n);
    rest = floor_divide(rest, n);
  }
  return stack(places, 0);
}

}  // namespace gradus
