/// Cropping and padding of images, boxes of them, edges and similarity.
#include <algorithm>
#include <cmath>
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/graph/context.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/image.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_bounds.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

void check_image_shape(std::string_view op, const Tensor& x) {
  require(x.shape().rank() >= 3, op, ": expected images [..., height, width, channels], got ", x.spec());
}
void check_known_size(std::string_view op, const Tensor& x) {
  check_image_shape(op, x);
  require(x.shape()[-3] >= 0 && x.shape()[-2] >= 0, op, ": height and width of ", x.spec(), " must be known");
}

/// Elements [begin, end) along `axis` less those [0, end - begin): differences of neighbours.
Tensor differences(const Tensor& x, int axis) {
  const int at = x.shape().normalized(axis);
  const std::int64_t fewer = dimension::subtract(x.shape()[at], 1);
  require_not_negative(
      fewer, [&] { return text("differences of neighbours: dimension ", at, " of ", x.spec(), " is empty"); });
  return slice_within(x, at, 1, fewer) - slice_within(x, at, 0, fewer);
}

/// Differences, with a 0 at the end.
Tensor padded_differences(const Tensor& x, int axis) {
  if (x.shape()[axis] == 0) return x;
  Paddings paddings(static_cast<std::size_t>(x.shape().rank()), {0, 0});
  paddings[static_cast<std::size_t>(axis)] = {0, 1};
  return pad(differences(x, axis), paddings);
}

/// Both images as floats of at least 32 bits on the scale of max_val, which is given on that of their dtype.
struct Pair {
  Tensor a, b;
  double max_val;
};
Pair intensities(std::string_view op, const Tensor& a, const Tensor& b, double max_val) {
  check_image_shape(op, a);
  require(a.spec() == b.spec(), op, ": the images are ", a.spec(), " and ", b.spec(), "; they must agree");
  require(a.dtype() != boolean && max_val > 0, op, ": expected numbers and a positive max_val, got ", a.spec(), " and ",
          max_val);
  const DType t = a.dtype() == f64 ? f64 : f32;
  return {cast(a, t), cast(b, t), max_val};
}

/// f32 [size, size, channels, 1]
Tensor gaussian(std::int64_t size, double sigma, std::int64_t channels, DType t) {
  std::vector<double> along;
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(size - 1) / 2;
    along.push_back(std::exp(-0.5 * x * x / (sigma * sigma)));
    sum += along.back();
  }
  std::vector<double> values;
  for (const double a : along)
    for (const double b : along)
      for (std::int64_t c = 0; c < channels; ++c) values.push_back(a / sum * b / sum);
  return cast(from_values(values, {size, size, channels, 1}), t);
}

/// The positions of a box's rows (or columns) in an image of n of them: [boxes, out].
Tensor positions(const Tensor& first, const Tensor& last, std::int64_t n, std::int64_t out) {
  const Tensor end = extent(n, first.dtype()) - 1;
  if (out == 1) return expand_dims((first + last) * 0.5 * end, 1);
  const Tensor step = (last - first) * end / static_cast<double>(out - 1);
  return expand_dims(first * end, 1) + expand_dims(step, 1) * reshape(iota({out}, first.dtype()), {1, out});
}

Tensor inside(const Tensor& position, std::int64_t n) {
  return logical_and(position >= 0, position <= extent(n, position.dtype()) - 1);
}

/// Reads of a box: rows [boxes, h] and columns [boxes, w] of whole numbers -> [boxes, h, w, channels].
struct BoxReader {
  Tensor flat;   // [batch * height * width, channels]
  Tensor first;  // i64 [boxes]: the first row of flat of the image of each box, divided by the pixels of an image
  std::int64_t height, width;

  Tensor at(const Tensor& row, const Tensor& column) const {
    const auto whole = [](const Tensor& x, std::int64_t n) {
      const Tensor i = cast(stop_gradient(x), i64);
      return minimum(maximum(i, 0), extent(n, i64) - 1);
    };
    const Tensor rows = expand_dims(first, 1) * extent(height, i64) + whole(row, height);  // [boxes, h]
    return gather(flat, expand_dims(rows, 2) * extent(width, i64) + expand_dims(whole(column, width), 1));
  }
};

void check_boxes(const Tensor& image, const Tensor& boxes, const Tensor& box_indices,
                 const std::array<std::int64_t, 2>& size) {
  constexpr std::string_view op = "crop_and_resize";
  require(image.shape().rank() == 4 && image.dtype() != boolean, op,
          ": expected images of numbers [batch, height, width, channels], got ", image.spec());
  require(is_floating(boxes.dtype()) && boxes.shape().rank() == 2 && boxes.shape()[1] == 4, op, ": boxes are ",
          boxes.spec(), ", expected floats [n, 4]");
  require(is_integer(box_indices.dtype()) && box_indices.shape() == Shape{boxes.shape()[0]}, op, ": box_indices are ",
          box_indices.spec(), ", expected one integer for each box of ", boxes.spec());
  require(size[0] > 0 && size[1] > 0, op, ": crop_size must be positive, got ", size[0], " and ", size[1]);
  require(image.shape()[1] != 0 && image.shape()[2] != 0, op, ": there is nothing in ", image.spec());
}

}  // namespace

Tensor central_crop(const Tensor& image, double central_fraction) {
  const HostFloats floats;
  check_known_size("central_crop", image);
  require(central_fraction > 0 && central_fraction <= 1, "central_crop: central_fraction must lie in (0, 1], got ",
          central_fraction);
  const auto start = [&](std::int64_t n) {
    return static_cast<std::int64_t>((static_cast<double>(n) - static_cast<double>(n) * central_fraction) / 2);
  };
  const std::int64_t height = image.shape()[-3], width = image.shape()[-2];
  return crop_to_bounding_box(image, start(height), start(width), height - 2 * start(height), width - 2 * start(width));
}

Tensor crop_to_bounding_box(const Tensor& image, std::int64_t offset_height, std::int64_t offset_width,
                            std::int64_t target_height, std::int64_t target_width) {
  check_image_shape("crop_to_bounding_box", image);
  const int rows = image.shape().rank() - 3;
  for (const std::int64_t offset : {offset_height, offset_width})
    require(offset >= 0 || (offset < any_size && Context::current()),
            "crop_to_bounding_box: offsets must not be negative, got ", offset_height, " and ", offset_width);
  for (const std::int64_t target : {target_height, target_width})
    require(target > 0 || (target < any_size && Context::current()),
            "crop_to_bounding_box: the size must be positive, got ", target_height, " and ", target_width);
  const Tensor cut = slice_axis(image, rows, offset_height, target_height, "crop_to_bounding_box");
  return slice_axis(cut, rows + 1, offset_width, target_width, "crop_to_bounding_box");
}

Tensor pad_to_bounding_box(const Tensor& image, std::int64_t offset_height, std::int64_t offset_width,
                           std::int64_t target_height, std::int64_t target_width) {
  check_image_shape("pad_to_bounding_box", image);
  const auto left_of = [](std::int64_t target, std::int64_t offset, std::int64_t n) {
    return dimension::subtract(target, dimension::add(offset, n));
  };
  const auto does_not_fit = [&] {
    return text("pad_to_bounding_box: ", image.spec(), " at row ", dimension::to_text(offset_height), " and column ",
                dimension::to_text(offset_width), " does not fit into ", target_height, " x ", target_width);
  };
  for (const std::int64_t n : {offset_height, offset_width})
    require(n >= 0 || (n < any_size && Context::current()), "pad_to_bounding_box: the image stands at row ",
            offset_height, " and column ", offset_width, "; expected numbers that are not negative");
  for (const std::int64_t n : {target_height, target_width})
    require(n >= 0, "pad_to_bounding_box: the size must not be negative, got ", target_height, " and ", target_width);
  const std::int64_t below = left_of(target_height, offset_height, image.shape()[-3]);
  const std::int64_t right = left_of(target_width, offset_width, image.shape()[-2]);
  for (const std::int64_t n : {below, right}) {
    if (dimension::symbols_in(n) == 0 && !dimension::is_never_negative(n)) throw InvalidArgument(does_not_fit());
    require_not_negative(n, does_not_fit);
  }
  const auto rank = static_cast<std::size_t>(image.shape().rank());
  Paddings paddings(rank, {0, 0});
  paddings[rank - 3] = {offset_height, below};
  paddings[rank - 2] = {offset_width, right};
  return pad(image, paddings);
}

Tensor resize_with_crop_or_pad(const Tensor& image, std::int64_t target_height, std::int64_t target_width) {
  constexpr std::string_view op = "resize_with_crop_or_pad";
  check_image_shape(op, image);
  require(target_height > 0 && target_width > 0, op, ": the size must be positive, got ", target_height, " and ",
          target_width);
  const std::int64_t height = image.shape()[-3], width = image.shape()[-2];
  const auto half_of_difference = [](std::int64_t a, std::int64_t b) {
    return dimension::maximum(dimension::floor_divide(dimension::subtract(a, b), 2), 0);
  };
  const Tensor cut =
      crop_to_bounding_box(image, half_of_difference(height, target_height), half_of_difference(width, target_width),
                           dimension::minimum(height, target_height), dimension::minimum(width, target_width));
  return pad_to_bounding_box(cut, half_of_difference(target_height, height), half_of_difference(target_width, width),
                             target_height, target_width);
}

Tensor resize_with_pad(const Tensor& image, std::int64_t target_height, std::int64_t target_width,
                       ResizeOptions options) {
  const HostFloats floats;
  constexpr std::string_view op = "resize_with_pad";
  check_known_size(op, image);
  const auto height = static_cast<double>(image.shape()[-3]), width = static_cast<double>(image.shape()[-2]);
  require(height > 0 && width > 0 && target_height > 0 && target_width > 0, op, ": the sizes must be positive, got ",
          image.spec(), " to ", target_height, " and ", target_width);
  const auto wanted_height = static_cast<double>(target_height), wanted_width = static_cast<double>(target_width);
  const double ratio = std::max(width / wanted_width, height / wanted_height);
  const auto whole = [](double x) { return static_cast<std::int64_t>(std::floor(x + 1e-9)); };
  const std::int64_t fitted_height = whole(height / ratio), fitted_width = whole(width / ratio);
  require(fitted_height > 0 && fitted_width > 0, op, ": ", image.spec(), " would vanish within ", target_height, " x ",
          target_width);
  return pad_to_bounding_box(resize(image, {fitted_height, fitted_width}, options),
                             whole((wanted_height - height / ratio) / 2), whole((wanted_width - width / ratio) / 2),
                             target_height, target_width);
}

ImageGradients image_gradients(const Tensor& image) {
  require(image.shape().rank() == 4 && image.dtype() != boolean,
          "image_gradients: expected images of numbers [batch, height, width, channels], got ", image.spec());
  return {padded_differences(image, 1), padded_differences(image, 2)};
}

Tensor sobel_edges(const Tensor& image) {
  check_image_shape("sobel_edges", require_floating(image, "sobel_edges"));
  const int rows = image.shape().rank() - 3;
  Paddings mirrored(static_cast<std::size_t>(image.shape().rank()), {0, 0});
  mirrored[static_cast<std::size_t>(rows)] = mirrored[static_cast<std::size_t>(rows) + 1] = {1, 1};
  const Tensor x = pad(widened(image), mirrored, PadMode::reflect);
  const auto at = [&](const Tensor& y, int axis, std::int64_t begin) {
    return slice_within(y, axis, begin, image.shape()[axis]);
  };
  const auto smooth = [&](const Tensor& y, int axis) { return at(y, axis, 0) + at(y, axis, 1) * 2 + at(y, axis, 2); };
  const auto slope = [&](const Tensor& y, int axis) { return at(y, axis, 2) - at(y, axis, 0); };
  return cast(stack({smooth(slope(x, rows), rows + 1), slope(smooth(x, rows), rows + 1)}, -1), image.dtype());
}

Tensor total_variation(const Tensor& images) {
  check_image_shape("total_variation", images);
  require(images.dtype() != boolean, "total_variation: expected numbers, got ", images.spec(), "; cast it first");
  const Tensor x = widened(images);
  const auto along = [&](int axis) {
    if (x.shape()[axis] == 0) return reduce_sum(x, {.axis = {-3, -2, -1}});
    return reduce_sum(abs(differences(x, axis)), {.axis = {-3, -2, -1}});
  };
  return cast(along(-3) + along(-2), images.dtype());
}

Tensor psnr(const Tensor& a, const Tensor& b, double max_val) {
  const HostFloats floats;
  const Pair pair = intensities("psnr", a, b, max_val);
  const Tensor error = reduce_mean(squared_difference(pair.a, pair.b), {.axis = {-3, -2, -1}});
  return 20 * std::log10(pair.max_val) - log10(error) * 10;
}

Tensor ssim(const Tensor& a, const Tensor& b, double max_val, SsimOptions options) {
  const HostFloats floats;
  check_options("ssim", options);
  const Pair pair = intensities("ssim", a, b, max_val);
  check_known_size("ssim", a);
  const std::int64_t size = options.filter_size, channels = a.shape().back();
  require(size > 0 && options.filter_sigma > 0, "ssim: filter_size and filter_sigma must be positive, got ", size,
          " and ", options.filter_sigma);
  require(a.shape()[-3] >= size && a.shape()[-2] >= size && channels > 0, "ssim: the images ", a.spec(),
          " are smaller than the filter of ", size);
  Shape lead = a.shape();
  for (int i = 0; i < 3; ++i) lead.erase(-1);
  const Shape flat{lead.size(), a.shape()[-3], a.shape()[-2], channels};
  const Tensor filter = gaussian(size, options.filter_sigma, channels, pair.a.dtype());
  const auto blurred = [&](const Tensor& x) { return depthwise_conv2d(x, filter); };
  const Tensor x = reshape(pair.a, flat), y = reshape(pair.b, flat);
  const double c1 = std::pow(options.k1 * max_val, 2), c2 = std::pow(options.k2 * max_val, 2);
  const Tensor mean_x = blurred(x), mean_y = blurred(y);
  const Tensor product = mean_x * mean_y * 2, squares = square(mean_x) + square(mean_y);
  const Tensor luminance = (product + c1) / (squares + c1);
  const Tensor contrast = (blurred(x * y) * 2 - product + c2) / (blurred(square(x) + square(y)) - squares + c2);
  return reshape(reduce_mean(luminance * contrast, {.axis = {1, 2, 3}}), lead);
}

Tensor crop_and_resize(const Tensor& image, const Tensor& boxes, const Tensor& box_indices,
                       std::array<std::int64_t, 2> crop_size, CropAndResizeOptions options) {
  const HostFloats floats;
  check_boxes(image, boxes, box_indices, crop_size);
  const DType t = image.dtype() == f64 ? f64 : f32;
  const std::int64_t height = image.shape()[1], width = image.shape()[2];
  const Tensor corners = cast(boxes, t);
  const auto corner = [&](std::int64_t i) { return squeeze(slice_within(corners, 1, i, 1), {1}); };
  const Tensor y = positions(corner(0), corner(2), height, crop_size[0]);
  const Tensor x = positions(corner(1), corner(3), width, crop_size[1]);
  // The image's number is read through a gather of its own, so that an index out of range is reported at the run.
  const Tensor first = gather(iota({image.shape()[0]}, i64), box_indices);
  const std::int64_t pixels = dimension::multiply(dimension::multiply(image.shape()[0], height), width);
  const BoxReader read{cast(reshape(image, {pixels, image.shape()[3]}), t), first, height, width};
  Tensor value;
  if (options.method == CropMethod::nearest) {
    value = read.at(floor(y + 0.5), floor(x + 0.5));
  } else {
    const Tensor top = floor(y), bottom = ceil(y), left = floor(x), right = ceil(x);
    const Tensor down = expand_dims(expand_dims(y - stop_gradient(top), 2), 3);
    const Tensor aside = expand_dims(expand_dims(x - stop_gradient(left), 1), 3);
    const auto across = [&](const Tensor& row) {
      const Tensor a = read.at(row, left);
      return a + (read.at(row, right) - a) * aside;
    };
    const Tensor above = across(top);
    value = above + (across(bottom) - above) * down;
  }
  const Tensor is_inside = logical_and(expand_dims(inside(y, height), 2), expand_dims(inside(x, width), 1));
  return where(expand_dims(is_inside, 3), value, options.extrapolation_value);
}

}  // namespace gradus
