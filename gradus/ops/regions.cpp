/// Regions of images: their contents by bilinear sampling, and non-maximum suppression.
#include <algorithm>
#include <cmath>
#include <numeric>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/grid_sample.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

constexpr std::int64_t most_samples = std::int64_t{1} << 28;

/// The samples of all bins along one axis of the image: [regions, bins, samples].
struct Samples {
  Tensor low, high;  // i64: the neighbours
  Tensor weight;     // of the higher one
  Tensor exist;      // of as many samples as the region has
  Tensor inside;     // those that are not beyond the image by more than an element
  Tensor count;      // [regions]: samples of a bin
};

Tensor column(const Tensor& x, std::int64_t k) { return squeeze(slice_within(x, 1, k, 1), {1}); }

/// 0 ... n - 1 along axis `at` of three.
Tensor places(std::int64_t n, int at, DType t) {
  Shape shape{1, 1, 1};
  shape.set(at, n);
  return reshape(range(n, t), shape);
}

/// Samples a bin, at most.
std::int64_t most_samples_of(const Tensor& bin, const RoiAlignOptions& options) {
  if (options.sampling_ratio > 0) return options.sampling_ratio;
  require(!bin.is_symbolic(),
          "roi_align: without a sampling_ratio the number of samples follows from the values of "
          "rois, which are not known while a function is traced; give a sampling_ratio");
  const double most = bin.shape()[0] == 0 ? 1 : std::ceil(cast(reduce_max(bin), f64).item());
  require(most < 1e6, "roi_align: a region has ", most, " elements a bin; give a sampling_ratio");
  return std::max<std::int64_t>(1, std::isnan(most) ? 1 : static_cast<std::int64_t>(most));
}

Samples samples_of(const Tensor& first, const Tensor& last, std::int64_t n, std::int64_t bins,
                   const RoiAlignOptions& options) {
  const DType t = first.dtype();
  Tensor length = last - first;
  if (!options.half_pixel) length = maximum(length, 1);
  const Tensor bin = length / static_cast<double>(bins);
  const std::int64_t most = most_samples_of(bin, options);
  Samples made;
  made.count = options.sampling_ratio > 0 ? fill_like(bin, options.sampling_ratio) : maximum(ceil(bin), 0);
  const Tensor start = reshape(first, {-1, 1, 1}), wide = reshape(bin, {-1, 1, 1});
  const Tensor count = reshape(made.count, {-1, 1, 1});
  const Tensor place = places(most, 2, t);
  Tensor at = start + places(bins, 1, t) * wide + (place + 0.5) * wide / maximum(stop_gradient(count), 1);
  const Tensor end = extent(n, t), all = zeros_like(at);
  made.exist = place + all < count + all;
  made.inside = logical_and(at >= -1, at <= end);
  at = maximum(at, 0);
  const Tensor last_index = extent(n, i64) - 1;
  made.low = minimum(cast(stop_gradient(at), i64), last_index);
  made.high = minimum(made.low + 1, last_index);
  made.weight = where(made.low >= last_index, all, at - cast(made.low, t));
  return made;
}

/// Along y and x: [regions, bins, samples] to [regions, bins y, samples y, bins x, samples x].
Tensor down(const Tensor& y) { return expand_dims(expand_dims(y, -1), -1); }
Tensor across(const Tensor& x) { return expand_dims(expand_dims(x, 1), 1); }

/// The values at the four corners of every sample, weighted: [..., channels].
std::vector<Tensor> corners(const Tensor& x, const Tensor& examples, const Samples& y, const Samples& z) {
  const Shape& shape = x.shape();
  const std::int64_t space = dimension::multiply(shape[2], shape[3]);
  const Tensor rows = reshape(transpose(reshape(x, {shape[0], shape[1], space}), {0, 2, 1}),
                              {dimension::multiply(shape[0], space), shape[1]});
  const Tensor first = reshape(examples, {-1, 1, 1, 1, 1}) * extent(space, i64);
  const Tensor width = extent(shape[3], i64);
  std::vector<Tensor> parts;
  for (const bool lower : {false, true})
    for (const bool right : {false, true}) {
      const Tensor index = first + down(lower ? y.high : y.low) * width + across(right ? z.high : z.low);
      const Tensor weight = down(lower ? y.weight : 1 - y.weight) * across(right ? z.weight : 1 - z.weight);
      parts.push_back(gather(rows, index) * expand_dims(weight, -1));
    }
  return parts;
}

Tensor bins_of(const std::vector<Tensor>& corners, const Samples& y, const Samples& x, bool takes_maximum) {
  const Tensor inside = expand_dims(logical_and(down(y.inside), across(x.inside)), -1);
  const Tensor exist = expand_dims(logical_and(down(y.exist), across(x.exist)), -1);
  const Tensor nothing = zeros_like(corners[0]);
  const Tensor count = reshape(y.count * x.count, {-1, 1, 1, 1});
  if (!takes_maximum) {
    const Tensor sample = where(logical_and(exist, inside), corners[0] + corners[1] + corners[2] + corners[3], nothing);
    return reduce_sum(sample, {.axis = {2, 4}}) / maximum(count, 1);
  }
  const Tensor highest = maximum(maximum(corners[0], corners[1]), maximum(corners[2], corners[3]));
  const double lowest = -std::numeric_limits<double>::infinity();
  const Tensor samples = where(exist, where(inside, highest, nothing), fill_like(nothing, lowest));
  const Tensor found = reduce_max(samples, {.axis = {2, 4}});
  return where(count > 0, found, zeros_like(found));
}

}  // namespace

Tensor roi_align(const Tensor& x, const Tensor& rois, const Tensor& batch_indices, RoiAlignOptions options) {
  check_options("roi_align", options);
  require(x.shape().rank() == 4 && is_floating(x.dtype()), "roi_align: x is ", x.spec(),
          ", expected floats [n, channels, height, width]");
  require(rois.shape().rank() == 2 && rois.shape()[1] == 4 && is_floating(rois.dtype()), "roi_align: rois are ",
          rois.spec(), ", expected floats [regions, 4]");
  require(batch_indices.shape().rank() == 1 && batch_indices.shape()[0] == rois.shape()[0] &&
              is_integer(batch_indices.dtype()),
          "roi_align: batch_indices are ", batch_indices.spec(), ", expected an integer for each of rois, ",
          rois.spec());
  require(options.output_height > 0 && options.output_width > 0 && options.output_height < most_samples &&
              options.output_width < most_samples && options.sampling_ratio >= 0 && options.sampling_ratio < 1 << 20,
          "roi_align: sizes must be positive, and the sampling ratio not negative");
  require(x.shape()[2] != 0 && x.shape()[3] != 0, "roi_align: there is nothing to sample in x, ", x.spec());
  const DType t = x.dtype() == f64 || rois.dtype() == f64 ? f64 : f32;
  const Tensor scaled = cast(rois, t) * options.spatial_scale - (options.half_pixel ? 0.5 : 0.0);
  const Samples across_x =
      samples_of(column(scaled, 0), column(scaled, 2), x.shape()[3], options.output_width, options);
  const Samples down_y = samples_of(column(scaled, 1), column(scaled, 3), x.shape()[2], options.output_height, options);
  const double total = static_cast<double>(options.output_height * options.output_width) *
                       static_cast<double>(down_y.low.shape()[2] * across_x.low.shape()[2]);
  require(total < static_cast<double>(most_samples), "roi_align: ", total, " samples a region are too many");
  const Tensor examples = cast(check_range(batch_indices, x.shape()[0], false), i64);
  const std::vector<Tensor> weighted = corners(cast(x, t), examples, down_y, across_x);
  return cast(transpose(bins_of(weighted, down_y, across_x, options.takes_maximum), {0, 3, 1, 2}), x.dtype());
}

namespace {

struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box box_at(const double* of, bool is_centered) {
  if (is_centered) return {of[1] - of[3] / 2, of[0] - of[2] / 2, of[1] + of[3] / 2, of[0] + of[2] / 2};
  return {std::min(of[0], of[2]), std::min(of[1], of[3]), std::max(of[0], of[2]), std::max(of[1], of[3])};
}

/// Intersection over union; 0 where one of them is nothing.
double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0 && a.area() > 0 && b.area() > 0)) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

/// The boxes of one class that are kept, best first; equal scores in their order.
std::vector<std::int64_t> kept(const std::vector<Box>& boxes, std::span<const double> scores,
                               const NonMaxSuppressionOptions& options) {
  std::vector<std::int64_t> order, chosen;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    if (scores[i] > options.score_threshold) order.push_back(static_cast<std::int64_t>(i));
  const auto at = [&](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return scores[at(a)] > scores[at(b)]; });
  for (const std::int64_t box : order) {
    if (static_cast<std::int64_t>(chosen.size()) >= options.max_output_size) break;
    if (std::ranges::none_of(chosen, [&](std::int64_t other) {
          return overlap(boxes[at(box)], boxes[at(other)]) > options.iou_threshold;
        }))
      chosen.push_back(box);
  }
  return chosen;
}

}  // namespace

Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores, NonMaxSuppressionOptions options) {
  check_options("non_max_suppression", options);
  const Shape &b = boxes.shape(), &s = scores.shape();
  require(b.rank() == 3 && b[2] == 4 && s.rank() == 3 && s[0] == b[0] && s[2] == b[1] && is_floating(boxes.dtype()) &&
              is_floating(scores.dtype()),
          "non_max_suppression: boxes are ", boxes.spec(), " and scores ", scores.spec(),
          ", expected floats [n, boxes, 4] and [n, classes, boxes]");
  require(!boxes.is_symbolic() && !scores.is_symbolic(),
          "non_max_suppression: how many boxes are kept depends on values, which are not known while a function is "
          "traced; call it outside");
  const std::vector<double> corners = cast(boxes, f64).to_vector<double>(),
                            given = cast(scores, f64).to_vector<double>();
  const std::size_t count = static_cast<std::size_t>(b[1]), classes = static_cast<std::size_t>(s[1]);
  std::vector<std::int64_t> selected;
  for (std::size_t n = 0; n < static_cast<std::size_t>(b[0]); ++n) {
    std::vector<Box> of_example;
    for (std::size_t i = 0; i < count; ++i)
      of_example.push_back(box_at(corners.data() + 4 * (n * count + i), options.center_point_box));
    for (std::size_t c = 0; c < classes; ++c)
      for (const std::int64_t box :
           kept(of_example, std::span(given).subspan((n * classes + c) * count, count), options))
        selected.insert(selected.end(), {static_cast<std::int64_t>(n), static_cast<std::int64_t>(c), box});
  }
  return from_values(selected, {static_cast<std::int64_t>(selected.size()) / 3, 3});
}

namespace {

/// To the nearest whole number, halves away from zero.
Tensor rounded(const Tensor& x) { return where(x < 0, ceil(x - 0.5), floor(x + 0.5)); }

/// True for those of n elements that lie in each of `bins` parts of the regions from first to last: bool [regions,
/// bins, n].
Tensor in_bins(const Tensor& first, const Tensor& last, std::int64_t bins, std::int64_t n) {
  const Tensor length = maximum(last - first + 1, 1), bin = length / static_cast<double>(bins);
  const Tensor i = iota({1, bins}, first.dtype());
  const auto column = [](const Tensor& x) { return expand_dims(x, 1); };
  const Tensor begin = expand_dims(floor(i * column(bin)) + column(first), 2);
  const Tensor end = expand_dims(ceil((i + 1) * column(bin)) + column(first), 2);
  const Tensor place = iota({1, 1, n}, first.dtype());
  return logical_and(place >= begin, place < end);
}

/// The largest along the last axis among those where `chosen` holds: -infinity of none.
Tensor largest_of(const Tensor& chosen, const Tensor& x) {
  const Tensor lowest = fill({}, -std::numeric_limits<double>::infinity(), x.dtype());
  return reduce_max(where(chosen, x, lowest), {.axis = {-1}});
}

}  // namespace

Tensor max_roi_pool(const Tensor& x, const Tensor& rois, std::int64_t pooled_height, std::int64_t pooled_width,
                    double spatial_scale) {
  constexpr std::string_view op = "max_roi_pool";
  require(is_floating(x.dtype()) && x.shape().rank() == 4, op, ": x is ", x.spec(),
          ", expected floats [n, channels, height, width]");
  require(rois.dtype() == x.dtype() && rois.shape().rank() == 2 && rois.shape()[1] == 5, op, ": rois are ", rois.spec(),
          ", expected [r, 5] of the dtype of x, ", x.spec());
  require(pooled_height > 0 && pooled_width > 0 && pooled_height < 1 << 20 && pooled_width < 1 << 20, op,
          ": the pooled size must be positive and below 2^20, got ", pooled_height, " and ", pooled_width);
  const Tensor regions = stop_gradient(widened(rois));
  const auto number = [&](std::int64_t k) { return squeeze(slice_within(regions, 1, k, 1), {1}); };
  const auto corner = [&](std::int64_t k) { return rounded(number(k) * spatial_scale); };
  const Tensor rows = in_bins(corner(2), corner(4), pooled_height, x.shape()[2]);
  const Tensor columns = in_bins(corner(1), corner(3), pooled_width, x.shape()[3]);
  const Tensor image = gather(x, cast(number(0), i64));  // [r, channels, height, width]
  // [r, channels, height, pooled_width], then [r, channels, pooled_height, pooled_width]
  const Tensor across = largest_of(expand_dims(expand_dims(columns, 1), 1), expand_dims(image, 3));
  const Tensor down = largest_of(expand_dims(expand_dims(rows, 1), 3), expand_dims(transpose(across), 2));
  return where(equal(down, -std::numeric_limits<double>::infinity()), 0, down);
}

}  // namespace gradus
