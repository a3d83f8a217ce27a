/// Grid sampling: positions become neighbours and weights along each axis, then one gather of rows per choice of
/// neighbours. Linear samples of images are a primitive. Decision 394 has the reasons.
#include "gradus/ops/grid_sample.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/sample_ops.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// One neighbour of every position along one axis.
struct Neighbour {
  Tensor index;   // i64, within the axis
  Tensor weight;  // empty: 1
  Tensor inside;  // whether it counts; empty: always
};

DType sampled_in(DType a, DType b) { return a == f64 || b == f64 ? f64 : f32; }

Tensor clipped(const Tensor& x, const Tensor& last) { return maximum(minimum(x, last), zeros_like(last)); }

/// x mirrored at `low` and at low + span, as often as it takes.
Tensor reflected(const Tensor& x, double low, const Tensor& span) {
  const Tensor distance = abs(x - low);
  const Tensor flips = floor(distance / span);
  const Tensor rest = distance - flips * span;
  return where(equal(flips - floor(flips * 0.5) * 2, 0), rest, span - rest) + low;
}

/// Positions of one axis of n elements, in elements, and what lies beyond it.
class AxisSampler {
 public:
  AxisSampler(const Tensor& normalized, std::int64_t n, const GridSampleOptions& options)
      : options_(options), n_(n), size_(extent(n, normalized.dtype())), last_(size_ - 1) {
    position_ = options.align_corners ? (normalized + 1) * 0.5 * last_ : ((normalized + 1) * size_ - 1) * 0.5;
  }

  /// In elements, within the axis unless zeros stand beyond it.
  Tensor position() const { return padded(position_); }

  std::vector<Neighbour> neighbours() const {
    switch (options_.mode) {
      case Interpolation::nearest: return {at(round(padded(position_)), {})};
      case Interpolation::linear: return linear();
      case Interpolation::cubic: break;
    }
    return cubic();
  }

 private:
  std::vector<Neighbour> linear() const {
    const Tensor x = padded(position_), below = floor(x), beyond = x - below;
    return {at(below, 1 - beyond), at(below + 1, beyond)};
  }
  /// Padding is of each neighbour, as in PyTorch.
  std::vector<Neighbour> cubic() const {
    const Tensor below = floor(position_), t = position_ - below;
    std::vector<Neighbour> found;
    for (int k = -1; k <= 2; ++k) found.push_back(at(padded(below + k), weight(abs(t - k), k == 0 || k == 1)));
    return found;
  }
  static Tensor weight(const Tensor& distance, bool is_near) {
    constexpr double a = -0.75;
    return is_near ? (distance * (a + 2) - (a + 3)) * distance * distance + 1
                   : ((distance - 5) * distance + 8) * distance * a - 4 * a;
  }
  Tensor padded(const Tensor& x) const {
    if (options_.padding == GridPadding::zeros) return x;
    if (options_.padding == GridPadding::border) return clipped(x, last_);
    const bool align = options_.align_corners;
    return clipped(reflected(x, align ? 0 : -0.5, maximum(align ? last_ : size_, 1)), last_);
  }
  Neighbour at(const Tensor& index, const Tensor& weight) const {
    const Tensor last = extent(n_, i64) - 1;
    Neighbour made{clipped(cast(stop_gradient(index), i64), last), weight, {}};
    if (options_.padding == GridPadding::zeros) made.inside = logical_and(index >= 0, index <= last_);
    return made;
  }

  const GridSampleOptions& options_;
  const std::int64_t n_;
  const Tensor size_, last_;
  Tensor position_;
};

Tensor weighted_by(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a * b; }
Tensor both_inside(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : logical_and(a, b); }

/// [n, channels, space...] -> [n, space..., channels], and back. Of a caller whose images have channels last, both give
/// way to its own.
Tensor with_channels_last(const Tensor& x) {
  std::vector<int> order{0};
  for (int i = 2; i < x.shape().rank(); ++i) order.push_back(i);
  order.push_back(1);
  return transpose(x, order);
}
Tensor with_channels_second(const Tensor& x) {
  std::vector<int> order{0, x.shape().rank() - 1};
  for (int i = 1; i + 1 < x.shape().rank(); ++i) order.push_back(i);
  return transpose(x, order);
}

/// [n, channels, space...] -> [n * space, channels]: rows that a gather reads.
Tensor as_rows(const Tensor& x) {
  const Tensor last = with_channels_last(x);
  return reshape(last, merged(last.shape(), 1));
}

/// For every choice of a neighbour along each axis: what stands there, [n, places, channels], weighted.
class Choices {
 public:
  Choices(const Tensor& x, std::vector<std::vector<Neighbour>> axes, DType t)
      : rows_(as_rows(x)), shape_(x.shape()), axes_(std::move(axes)) {
    if (axes_[0][0].weight.defined()) rows_ = cast(rows_, t);
  }

  Tensor sum() {
    add(0, iota({shape_[0], 1}, i64), {}, {});
    return sum_;
  }

 private:
  void add(std::size_t axis, const Tensor& index, const Tensor& weight, const Tensor& inside) {
    if (axis < axes_.size()) {
      const Tensor n = extent(shape_[static_cast<int>(axis) + 2], i64);
      for (const Neighbour& k : axes_[axis])
        add(axis + 1, index * n + k.index, weighted_by(weight, k.weight), both_inside(inside, k.inside));
      return;
    }
    Tensor part = gather(rows_, index);
    if (weight.defined()) part = part * expand_dims(weight, -1);
    if (inside.defined()) part = where(expand_dims(inside, -1), part, zeros_like(part));
    sum_ = sum_.defined() ? sum_ + part : part;
  }

  Tensor rows_;
  const Shape shape_;
  const std::vector<std::vector<Neighbour>> axes_;
  Tensor sum_;
};

/// [n, places, channels]
Tensor sampled(const Tensor& x, const std::vector<AxisSampler>& axes, const GridSampleOptions& options, DType t) {
  if (options.mode == Interpolation::linear && axes.size() == 2)
    return apply(LinearSample{options.padding == GridPadding::zeros}, cast(with_channels_last(x), t),
                 axes[0].position(), axes[1].position());
  std::vector<std::vector<Neighbour>> neighbours;
  for (const AxisSampler& axis : axes) neighbours.push_back(axis.neighbours());
  return Choices(x, std::move(neighbours), t).sum();
}

void check_grid(const Tensor& x, const Tensor& grid, const GridSampleOptions& options) {
  const int k = x.shape().rank() - 2;
  require(k >= 1 && k <= 3, "grid_sample: x is ", x.spec(), ", expected [n, channels, d1 ... dk] with k of 1 to 3");
  require(is_floating(grid.dtype()), "grid_sample: the grid is ", grid.spec(), ", expected floats");
  require(grid.shape().rank() >= 2 && grid.shape()[0] == x.shape()[0] && grid.shape()[-1] == k,
          "grid_sample: the grid is ", grid.spec(), ", expected [", dimension::to_text(x.shape()[0]), ", places..., ",
          k, "] for x ", x.spec());
  require(options.mode == Interpolation::nearest || is_floating(x.dtype()), "grid_sample: x is ", x.spec(),
          "; linear and cubic take floats, cast it first");
  for (int i = 2; i < x.shape().rank(); ++i)
    require(x.shape()[i] != 0, "grid_sample: there is nothing to sample in x, ", x.spec());
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, GridSampleOptions options) {
  const HostFloats floats;
  check_grid(x, grid, options);
  const int k = x.shape().rank() - 2;
  const DType t = sampled_in(x.dtype(), grid.dtype());
  std::int64_t places = 1;
  for (int i = 1; i + 1 < grid.shape().rank(); ++i) places = dimension::multiply(places, grid.shape()[i]);
  const Tensor flat = cast(reshape(grid, {grid.shape()[0], places, k}), t);
  std::vector<AxisSampler> axes;
  for (int d = 0; d < k; ++d)
    axes.emplace_back(squeeze(slice_within(flat, 2, k - 1 - d, 1), {2}), x.shape()[d + 2], options);
  Shape shape{x.shape()[0]};
  for (int i = 1; i + 1 < grid.shape().rank(); ++i) shape.push_back(grid.shape()[i]);
  shape.push_back(x.shape()[1]);
  return cast(with_channels_second(reshape(sampled(x, axes, options, t), shape)), x.dtype());
}

Tensor affine_grid(const Tensor& theta, const std::vector<std::int64_t>& size, bool align_corners) {
  const HostFloats floats;
  const auto k = static_cast<std::int64_t>(size.size());
  require(k == 2 || k == 3, "affine_grid: ", k, " sizes; expected height and width, or depth, height and width");
  require(theta.shape().rank() == 3 && theta.shape()[1] == k && theta.shape()[2] == k + 1 && is_floating(theta.dtype()),
          "affine_grid: theta is ", theta.spec(), ", expected floats [n, ", k, ", ", k + 1, "]");
  std::int64_t places = 1;
  for (const std::int64_t n : size) {
    require(n >= 0 && n < 1 << 26 && places * n < 1 << 26, "affine_grid: a size is negative, not known or too large");
    places *= n;
  }
  std::vector<double> base;
  for (std::int64_t at = 0; at < places; ++at) {
    std::int64_t rest = at;
    for (auto n = size.rbegin(); n != size.rend(); rest /= *n++) {
      const auto i = static_cast<double>(rest % *n), length = static_cast<double>(*n);
      base.push_back(!align_corners ? (2 * i + 1) / length - 1 : *n == 1 ? 0 : 2 * i / (length - 1) - 1);
    }
    base.push_back(1);
  }
  const DType t = computed_in(theta.dtype());
  const Tensor grid = matmul(cast(from_values(base, {places, k + 1}), t), transpose(cast(theta, t)));
  Shape shape{theta.shape()[0]};
  for (const std::int64_t n : size) shape.push_back(n);
  shape.push_back(k);
  return cast(reshape(grid, shape), theta.dtype());
}

}  // namespace gradus
