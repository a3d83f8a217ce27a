/// Reductions of segments: scatters into one row per segment, and one for rows that are left out.
#include "gradus/ops/segment.h"
#include <limits>
#include <optional>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/known_values.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// x as [places, inner...] and where each row goes: a negative segment to the row behind the last.
struct Routed {
  Tensor x, target;
  std::int64_t segments;
};

Routed route(std::string_view op, const Tensor& x, const Tensor& segments, std::int64_t num_segments) {
  require(num_segments >= 0 || dimension::symbols_in(num_segments) > 0, op, ": ", num_segments,
          " is no number of segments");
  require(x.dtype() != boolean, op, ": expected numbers, got ", x.spec(), "; cast it first");
  const Tensor ids = as_indices(op, segments);
  const int places = ids.shape().rank();
  bool fits = places <= x.shape().rank();
  for (int i = 0; fits && i < places; ++i) fits = ids.shape()[i] == x.shape()[i];
  require(fits, op, ": segments are ", segments.spec(), ", which are not the first dimensions of x ", x.spec());
  Shape rows{ids.shape().size()};
  for (int i = places; i < x.shape().rank(); ++i) rows.push_back(x.shape()[i]);
  const Tensor flat = reshape(ids, {rows[0]}), none = fill_like(flat, 0);
  const Tensor checked = cast(check_range(maximum(flat, none), num_segments, false), i64);
  const Tensor left_out = broadcast_to(extent(num_segments, i64), checked.shape());
  return {reshape(x, rows), where(flat < none, left_out, checked), num_segments};
}

Shape with_rows(const Tensor& x, std::int64_t n) {
  Shape shape = x.shape();
  shape.set(0, n);
  return shape;
}

Tensor without_left_out(const Tensor& y, std::int64_t segments) { return slice_within(y, 0, 0, segments); }

Tensor sum_of(const Tensor& x, const Routed& to) {
  const Tensor y = apply(ScatterAdd{-x.shape().rank(), dimension::add(to.segments, 1)}, to.target, x);
  return without_left_out(y, to.segments);
}

/// The number of elements of each segment, [segments, 1...], at least `least`.
Tensor counts_of(const Routed& to, DType dtype, int rank, std::int64_t least) {
  const Tensor ones_of_rows = fill({to.x.shape()[0]}, 1, dtype);
  Shape shape{to.segments};
  while (shape.rank() < rank) shape.push_back(1);
  const Tensor counts = reshape(sum_of(ones_of_rows, to), shape);
  return least ? maximum(counts, fill_like(counts, least)) : counts;
}

/// For f16 and bf16 in f32: products are rounded once.
Tensor combined(Routed to, scalar::Literal start, Reduction reduction) {
  if (is_narrow(to.x.dtype())) {
    const DType t = std::exchange(to.x, widened(to.x)).dtype();
    return cast(combined(to, start, reduction), t);
  }
  const Tensor initial = fill(with_rows(to.x, dimension::add(to.segments, 1)), start, to.x.dtype());
  const int axis = -to.x.shape().rank();
  return without_left_out(apply(Scatter{axis, static_cast<int>(reduction)}, initial, to.target, to.x), to.segments);
}

/// The highest or lowest number of a dtype.
scalar::Literal limit_of(DType t, bool highest, bool finite) {
  if (is_floating(t) && !finite)
    return highest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  return with_type(t, [&]<class T>(T) -> scalar::Literal {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T>) return highest ? Limits::max() : Limits::lowest();
    else return static_cast<double>(highest ? Limits::max() : Limits::lowest());
  });
}

/// The largest, or the smallest, numbers of segments; `empty` where there is nothing.
Tensor extreme(const Routed& to, bool largest, std::optional<scalar::Literal> empty) {
  const DType t = to.x.dtype();
  const Tensor y = combined(to, limit_of(t, !largest, false), largest ? Reduction::max : Reduction::min);
  const scalar::Literal at_nothing = empty.value_or(limit_of(t, !largest, true));
  return where(equal(counts_of(to, i32, y.shape().rank(), 0), 0), fill({}, at_nothing, t), y);
}

/// The sum divided by the number of elements, or by its square root; of narrow floats in f32.
Tensor divided(std::string_view op, Routed to, bool by_root) {
  require(is_floating(to.x.dtype()), op, ": expected floats, got ", to.x.spec(), "; cast(x, f32) first");
  const DType t = to.x.dtype();
  to.x = widened(to.x);
  const Tensor sum = sum_of(to.x, to), counts = counts_of(to, to.x.dtype(), sum.shape().rank(), 1);
  return cast(sum / (by_root ? sqrt(counts) : counts), t);
}

/// The route of segments in ascending order.
Routed route_of_sorted(std::string_view op, const Tensor& x, const Tensor& segments) {
  require(segments.shape().rank() == 1, op, ": segments are ", segments.spec(), ", expected a vector");
  const std::vector<std::int64_t> ids = known_integers(op, "segments", segments, "use the unsorted_ function");
  for (std::size_t i = 0; i < ids.size(); ++i)
    require(ids[i] >= (i ? ids[i - 1] : 0), op, ": segment ", ids[i], " at position ", i,
            " is not in ascending order from 0");
  return route(op, x, segments, ids.empty() ? 0 : ids.back() + 1);
}

}  // namespace

Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segments, std::int64_t num_segments) {
  const Routed to = route("unsorted_segment_sum", x, segments, num_segments);
  return sum_of(to.x, to);
}
Tensor unsorted_segment_mean(const Tensor& x, const Tensor& segments, std::int64_t num_segments) {
  return divided("unsorted_segment_mean", route("unsorted_segment_mean", x, segments, num_segments), false);
}
Tensor unsorted_segment_sqrt_n(const Tensor& x, const Tensor& segments, std::int64_t num_segments) {
  return divided("unsorted_segment_sqrt_n", route("unsorted_segment_sqrt_n", x, segments, num_segments), true);
}
Tensor unsorted_segment_prod(const Tensor& x, const Tensor& segments, std::int64_t num_segments) {
  return combined(route("unsorted_segment_prod", x, segments, num_segments), 1, Reduction::mul);
}
Tensor unsorted_segment_max(const Tensor& x, const Tensor& segments, std::int64_t num_segments) {
  return extreme(route("unsorted_segment_max", x, segments, num_segments), true, {});
}
Tensor unsorted_segment_min(const Tensor& x, const Tensor& segments, std::int64_t num_segments) {
  return extreme(route("unsorted_segment_min", x, segments, num_segments), false, {});
}

Tensor segment_sum(const Tensor& x, const Tensor& segments) {
  const Routed to = route_of_sorted("segment_sum", x, segments);
  return sum_of(to.x, to);
}
Tensor segment_mean(const Tensor& x, const Tensor& segments) {
  return divided("segment_mean", route_of_sorted("segment_mean", x, segments), false);
}
Tensor segment_prod(const Tensor& x, const Tensor& segments) {
  return combined(route_of_sorted("segment_prod", x, segments), 1, Reduction::mul);
}
Tensor segment_max(const Tensor& x, const Tensor& segments) {
  return extreme(route_of_sorted("segment_max", x, segments), true, 0);
}
Tensor segment_min(const Tensor& x, const Tensor& segments) {
  return extreme(route_of_sorted("segment_min", x, segments), false, 0);
}

}  // namespace gradus
