/// Resampling as a weighted sum of neighbours along one axis after the other.
#include "gradus/ops/resize.h"
#include <algorithm>
#include <cmath>
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

constexpr std::size_t most_gathers =
    16;  // of as many neighbours each is read by itself; more are summed as a reduction
constexpr std::int64_t most_neighbours = std::int64_t{1} << 26;  // of all elements

/// How much a neighbour at a distance weighs, 0 from `radius` on.
struct Kernel {
  double radius = 1;
  double (*weight)(double distance, double a) = nullptr;  // a: of cubic convolution
};
/// ResampleOptions with the kernel that they mean.
struct Resampling : ResampleOptions {
  Kernel kernel = {};
  bool is_area = false;  // what an element covers of its neighbours, instead of a kernel
};

double triangle(double x, double) { return std::max(0.0, 1 - x); }
/// The cubic convolution of Keys (1981).
double keys(double x, double a) {
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}
template <int radius> double lanczos(double x, double) {
  constexpr double pi = std::numbers::pi;
  if (x > radius) return 0;
  return x <= 1e-3 ? 1 : radius * std::sin(pi * x) * std::sin(pi * x / radius) / (pi * pi * x * x);
}
double gaussian(double x, double) { return x >= 1.5 ? 0 : std::exp(-2 * x * x); }
/// Mitchell and Netravali (1988), B = C = 1/3.
double mitchell(double x, double) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-7.0 / 18 * x + 2) * x - 10.0 / 3) * x + 16.0 / 9 : (7.0 / 6 * x - 2) * x * x + 8.0 / 9;
}

/// One axis that changes.
struct Axis {
  int at;               // in x
  std::int64_t n, out;  // elements before and after
  double scale;
  double begin = 0, end = 1;
};

/// The sources of the result's elements, `count` neighbours each: neighbour k of element i stands at i * count + k.
struct Neighbours {
  std::size_t count;
  std::vector<std::int64_t> index;
  std::vector<double> weight;
};

/// Scales that come as f32 put positions a little beside the wholes and halves that decide between neighbours.
double settled(double position) {
  const double near = std::nearbyint(2 * position) / 2;
  return std::abs(near - position) <= 1e-6 * (1 + std::abs(position)) ? near : position;
}

double position_of(std::int64_t place, const Axis& axis, Coordinates mode) {
  const double i = static_cast<double>(place), n = static_cast<double>(axis.n);
  const double m = axis.scale * n;
  const bool single = std::abs(m - 1) < 1e-6;
  const double half_pixel = (i + 0.5) / axis.scale - 0.5;
  switch (mode) {
    case Coordinates::half_pixel: return half_pixel;
    case Coordinates::half_pixel_symmetric: return n / 2 * (1 - static_cast<double>(axis.out) / m) + half_pixel;
    case Coordinates::pytorch_half_pixel: return single ? -0.5 : half_pixel;
    case Coordinates::align_corners: return single ? 0 : i * (n - 1) / (m - 1);
    case Coordinates::asymmetric: return i / axis.scale;
    case Coordinates::tf_half_pixel_for_nn: return (i + 0.5) / axis.scale;
    case Coordinates::tf_crop_and_resize: break;
  }
  const double length = (axis.end - axis.begin) * (n - 1);
  return axis.begin * (n - 1) + (single ? length / 2 : i * length / (m - 1));
}

std::int64_t nearest_to(double position, NearestMode mode) {
  const double at = settled(position);
  switch (mode) {
    case NearestMode::round_prefer_floor: return static_cast<std::int64_t>(std::ceil(at - 0.5));
    case NearestMode::round_prefer_ceil: return static_cast<std::int64_t>(std::floor(at + 0.5));
    case NearestMode::floor: return static_cast<std::int64_t>(std::floor(at));
    case NearestMode::ceil: break;
  }
  return static_cast<std::int64_t>(std::ceil(at));
}

/// How much of neighbour j element `i` covers, as a part of the whole.
double covered(std::int64_t i, std::int64_t j, const Axis& axis) {
  const double begin = static_cast<double>(i) / axis.scale, end = static_cast<double>(i + 1) / axis.scale;
  const double from = std::max(begin, static_cast<double>(j)), to = std::min(end, static_cast<double>(j + 1));
  return std::max(0.0, to - from) * axis.scale;
}

/// How far neighbours lie at most.
std::int64_t reach_of(const Axis& axis, const Resampling& options) {
  if (options.is_area) return static_cast<std::int64_t>(std::ceil(0.5 / axis.scale)) + 1;
  const double stretch = options.antialias ? std::min(axis.scale, 1.0) : 1.0;
  return static_cast<std::int64_t>(std::ceil(options.kernel.radius / stretch));
}

/// Adds those of one element, whose weights sum to 1. A neighbour without weight is replaced by one that has some, so
/// that what it holds does no harm.
void add_weighted(Neighbours& all, std::int64_t i, double position, const Axis& axis, const Resampling& options) {
  const double stretch = options.antialias ? std::min(axis.scale, 1.0) : 1;
  const std::int64_t reach = reach_of(axis, options);
  const auto base = static_cast<std::int64_t>(std::floor(position));
  const std::size_t first = all.index.size();
  double sum = 0;
  for (std::int64_t j = base - reach + 1; j <= base + reach; ++j) {
    const bool is_absent = options.exclude_outside && (j < 0 || j >= axis.n);
    all.index.push_back(std::clamp<std::int64_t>(j, 0, axis.n - 1));
    const double distance = std::abs(static_cast<double>(j) - position) * stretch;
    all.weight.push_back(is_absent         ? 0
                         : options.is_area ? covered(i, j, axis)
                                           : options.kernel.weight(distance, options.cubic_coeff_a));
    sum += all.weight.back();
  }
  const auto weights = std::span(all.weight).subspan(first);
  const auto heaviest = static_cast<std::size_t>(std::ranges::max_element(weights) - weights.begin());
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] == 0) all.index[first + k] = all.index[first + heaviest];
    if (options.antialias || options.exclude_outside) weights[k] /= sum;
  }
}

Neighbours neighbours_of(const Axis& axis, const Resampling& options) {
  const bool is_single = options.mode == Interpolation::nearest;
  Neighbours all{is_single ? 1 : static_cast<std::size_t>(2 * reach_of(axis, options)), {}, {}};
  require(axis.out <= most_neighbours / static_cast<std::int64_t>(all.count), "resample: ", axis.n, " elements become ",
          axis.out, ", of ", all.count, " neighbours each; that is too large");
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double position = position_of(i, axis, options.coordinates);
    if (is_single)
      all.index.push_back(std::clamp<std::int64_t>(nearest_to(position, options.nearest_mode), 0, axis.n - 1));
    else add_weighted(all, i, position, axis, options);
  }
  return all;
}

/// Values of one element along `at` in a tensor of this rank, of dtype t.
Tensor along(const std::vector<double>& values, int at, int rank, DType t) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(i == at ? static_cast<std::int64_t>(values.size()) : 1);
  return cast(from_values(values, shape), t);
}

Tensor gathered(const Tensor& x, const std::vector<std::int64_t>& index, int at) {
  return gather(x, from_values(index, {static_cast<std::int64_t>(index.size())}), at);
}

/// Many neighbours: all of them side by side, and a sum.
Tensor reduced(const Tensor& x, const Axis& axis, const Neighbours& all) {
  Shape shape = x.shape();
  shape.set(axis.at, axis.out);
  shape.insert(axis.at + 1, static_cast<std::int64_t>(all.count));
  const Tensor weighted = gathered(x, all.index, axis.at) * along(all.weight, axis.at, x.shape().rank(), x.dtype());
  return reduce_sum(reshape(weighted, shape), {.axis = {axis.at + 1}});
}

/// Neighbour k of every element.
template <class T> std::vector<T> every(const std::vector<T>& values, std::size_t k, std::size_t count) {
  std::vector<T> found;
  for (std::size_t i = k; i < values.size(); i += count) found.push_back(values[i]);
  return found;
}

Tensor interpolated(const Tensor& x, const Axis& axis, const Resampling& options) {
  const Neighbours all = neighbours_of(axis, options);
  if (options.mode == Interpolation::nearest) return gathered(x, all.index, axis.at);
  if (all.count > most_gathers) return reduced(x, axis, all);
  Tensor sum;
  for (std::size_t k = 0; k < all.count; ++k) {
    const Tensor weight = along(every(all.weight, k, all.count), axis.at, x.shape().rank(), x.dtype());
    const Tensor part = gathered(x, every(all.index, k, all.count), axis.at) * weight;
    sum = k == 0 ? part : sum + part;
  }
  return sum;
}

Tensor resampled(const Tensor& x, const Axis& axis, const Resampling& options) {
  const Tensor y = interpolated(x, axis, options);
  if (options.coordinates != Coordinates::tf_crop_and_resize) return y;
  std::vector<double> outside;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double at = settled(position_of(i, axis, options.coordinates));
    outside.push_back(at < 0 || at > static_cast<double>(axis.n - 1));
  }
  if (std::ranges::count(outside, 1.0) == 0) return y;
  return where(along(outside, axis.at, x.shape().rank(), boolean), fill({}, options.extrapolation_value, x.dtype()), y);
}

void check_options(const Tensor& x, const ResampleOptions& options, std::size_t axes) {
  require(options.sizes.empty() != options.scales.empty(), "resample: give sizes or scales, one of them");
  require(std::max(options.sizes.size(), options.scales.size()) == axes, "resample: ", x.spec(), " changes along ",
          axes, " axes, but there are ", std::max(options.sizes.size(), options.scales.size()), " sizes or scales");
  require(options.scales.empty() || options.aspect_ratio == AspectRatio::stretch,
          "resample: an aspect ratio is kept by sizes, not by scales");
  const bool crops = options.coordinates == Coordinates::tf_crop_and_resize;
  require(!crops || options.roi.size() == 2 * axes, "resample: tf_crop_and_resize needs a roi of ", 2 * axes,
          " numbers, begins and then ends, got ", options.roi.size());
  require(options.mode != Interpolation::nearest || !options.antialias,
          "resample: antialias is of linear and cubic, nearest reads one element");
  require(options.mode == Interpolation::nearest || x.dtype() != boolean, "resample: ", x.spec(),
          " can only be resampled by nearest; cast it to numbers first");
}

Axis axis_of(const Tensor& x, const ResampleOptions& options, int at, std::size_t k, std::size_t count) {
  const std::int64_t n = x.shape()[at];
  const bool crops = options.coordinates == Coordinates::tf_crop_and_resize;
  Axis axis{at, n, n, 1};
  if (crops) axis.begin = options.roi[k], axis.end = options.roi[count + k];
  if (!crops && (options.sizes.empty() ? options.scales[k] == 1 : options.sizes[k] == n)) return axis;
  require(n > 0, "resample: axis ", at, " of ", x.spec(), " must have a known, positive size");
  const auto elements = static_cast<double>(n);
  if (!options.sizes.empty()) {
    require(options.sizes[k] > 0, "resample: axis ", at, " of ", x.spec(), " becomes ", options.sizes[k],
            "; sizes must be positive");
    axis.out = options.sizes[k];
    axis.scale = static_cast<double>(axis.out) / elements;
    return axis;
  }
  axis.scale = options.scales[k];
  require(axis.scale > 0 && axis.scale * elements < 9e15, "resample: scale ", axis.scale, " of axis ", at,
          "; expected a positive number of elements");
  axis.out = static_cast<std::int64_t>(std::floor(settled(axis.scale * elements)));
  return axis;
}

std::vector<Axis> axes_of(const Tensor& x, const ResampleOptions& options) {
  std::vector<int> places = options.axis;
  for (int i = 0; options.axis.empty() && i < x.shape().rank(); ++i) places.push_back(i);
  check_options(x, options, places.size());
  std::vector<Axis> axes;
  for (const int place : places) {
    const int at = x.shape().normalized(place);
    require(std::ranges::find(axes, at, &Axis::at) == axes.end(), "resample: axis ", at, " of ", x.spec(),
            " is named twice");
    axes.push_back(axis_of(x, options, at, axes.size(), places.size()));
  }
  return axes;
}

/// One scale for all axes: the smallest, or the largest.
void keep_aspect_ratio(std::vector<Axis>& axes, AspectRatio policy) {
  if (policy == AspectRatio::stretch || axes.empty()) return;
  const auto by_scale = [](const Axis& a, const Axis& b) { return a.scale < b.scale; };
  const double scale = (policy == AspectRatio::not_larger ? std::ranges::min_element(axes, by_scale)
                                                          : std::ranges::max_element(axes, by_scale))
                           ->scale;
  for (Axis& axis : axes) {
    axis.scale = scale;
    axis.out = static_cast<std::int64_t>(std::floor(scale * static_cast<double>(axis.n) + 0.5));
  }
}

bool is_unchanged(const Axis& axis, const ResampleOptions& options) {
  return axis.scale == 1 && axis.out == axis.n && options.coordinates != Coordinates::tf_crop_and_resize;
}

/// The type in which integers, and floats of less precision, are interpolated.
DType interpolated_in(DType t) { return t == f64 || (is_integer(t) && size_of(t) >= 4) ? f64 : f32; }

/// The largest size within `size` that has the ratio of the images.
std::array<std::int64_t, 2> of_same_ratio(const Tensor& images, std::array<std::int64_t, 2> size) {
  const std::int64_t height = images.shape()[-3], width = images.shape()[-2];
  require(height > 0 && width > 0, "resize: the height and width of ", images.spec(), " must be known and positive");
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const double scale = std::min(static_cast<double>(size[0]) / h, static_cast<double>(size[1]) / w);
  return {std::llrint(scale * h), std::llrint(scale * w)};
}

Tensor resample_by(const Tensor& x, const Resampling& options) {
  const HostFloats floats;
  std::vector<Axis> axes = axes_of(x, options);
  keep_aspect_ratio(axes, options.aspect_ratio);
  std::ranges::sort(axes, {}, [](const Axis& axis) { return -axis.at; });
  // Nearest is exact; its gradient sums along one axis after the other, of narrow floats in f32 throughout.
  const bool is_exact = options.mode == Interpolation::nearest && !is_narrow(x.dtype());
  Tensor y = is_exact ? x : cast(x, interpolated_in(x.dtype()));
  for (const Axis& axis : axes)
    if (!is_unchanged(axis, options)) y = resampled(y, axis, options);
  return cast(y, x.dtype());
}

Kernel kernel_of(ResizeMethod method) {
  switch (method) {
    case ResizeMethod::nearest:
    case ResizeMethod::area:
    case ResizeMethod::bilinear: return {1, triangle};
    case ResizeMethod::bicubic: return {2, keys};
    case ResizeMethod::lanczos3: return {3, lanczos<3>};
    case ResizeMethod::lanczos5: return {5, lanczos<5>};
    case ResizeMethod::gaussian: return {1.5, gaussian};
    case ResizeMethod::mitchellcubic: return {2, mitchell};
  }
  throw InternalError("a method of resizing that does not exist");
}

}  // namespace

Tensor resample(const Tensor& x, const ResampleOptions& options) {
  const HostFloats floats;
  const bool is_cubic = options.mode == Interpolation::cubic;
  return resample_by(x, {options, kernel_of(is_cubic ? ResizeMethod::bicubic : ResizeMethod::bilinear)});
}

Tensor resize(const Tensor& images, std::array<std::int64_t, 2> size, ResizeOptions options) {
  const HostFloats floats;
  const int rank = images.shape().rank();
  require(rank >= 3, "resize: expected images [..., height, width, channels], got ", images.spec());
  const ResizeMethod method = options.method;
  const bool is_nearest = method == ResizeMethod::nearest, is_area = method == ResizeMethod::area;
  require(!options.antialias || (!is_nearest && !is_area), "resize: nearest and area have no antialias");
  const Tensor x = is_nearest || is_floating(images.dtype()) ? images : cast(images, f32);
  if (options.preserve_aspect_ratio) size = of_same_ratio(x, size);
  const ResampleOptions how{.axis = {rank - 3, rank - 2},
                            .sizes = {size[0], size[1]},
                            .mode = is_nearest ? Interpolation::nearest : Interpolation::linear,
                            .coordinates = is_nearest ? Coordinates::tf_half_pixel_for_nn : Coordinates::half_pixel,
                            .nearest_mode = NearestMode::floor,
                            .cubic_coeff_a = -0.5,
                            .exclude_outside = is_area || options.antialias || method != ResizeMethod::bilinear,
                            .antialias = options.antialias};
  return resample_by(x, {how, kernel_of(method), is_area});
}

Tensor center_crop_pad(const Tensor& x, const std::vector<std::int64_t>& sizes, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  const HostFloats floats;
  std::vector<int> places = axis;
  for (int i = 0; axis.empty() && i < x.shape().rank(); ++i) places.push_back(i);
  require(places.size() == sizes.size(), "center_crop_pad: ", sizes.size(), " sizes for ", places.size(), " axes of ",
          x.spec());
  Tensor y = x;
  for (std::size_t k = 0; k < places.size(); ++k) {
    const int at = x.shape().normalized(places[k]);
    const std::int64_t n = y.shape()[at], size = sizes[k];
    require(size >= 0, "center_crop_pad: axis ", at, " of ", x.spec(), " becomes ", size,
            "; sizes must be known and not negative");
    const std::int64_t over = dimension::subtract(n, size), under = dimension::subtract(size, n);
    if (!SizeChoice::decide(n >= 0 && n < size)) {
      y = slice_axis(y, at, dimension::floor_divide(over, 2), size, "center_crop_pad");
      continue;
    }
    std::vector<std::array<std::int64_t, 2>> paddings(static_cast<std::size_t>(x.shape().rank()));
    paddings[static_cast<std::size_t>(at)] = {dimension::floor_divide(under, 2), dimension::ceil_divide(under, 2)};
    y = pad(y, paddings);
  }
  return y;
}

}  // namespace gradus
