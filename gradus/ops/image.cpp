/// Colours and intensities of images.
#include "gradus/ops/image.h"
#include <cmath>
#include <limits>
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

void check_images(std::string_view op, const Tensor& x) {
  require(x.dtype() != boolean && x.shape().rank() >= 3, op,
          ": expected images of numbers [..., height, width, channels], got ", x.spec());
}
void check_channels(std::string_view op, const Tensor& x, std::int64_t channels) {
  require(x.shape().rank() >= 1 && x.shape().back() == channels, op, ": expected [..., ", channels, "], got ",
          x.spec());
}
void check_colours(std::string_view op, const Tensor& x) {
  require_floating(x, op);
  check_channels(op, x, 3);
}

double full_intensity(DType t) {
  const int bits = static_cast<int>(8 * size_of(t)) - (is_signed(t) ? 1 : 0);
  return std::ldexp(1.0, bits) - 1;
}

/// f of the intensities as floats of at least 32 bits, brought back to the type of x.
Tensor on_intensities(const Tensor& x, const auto& f) {
  if (is_integer(x.dtype())) return convert_image_dtype(f(convert_image_dtype(x, f32)), x.dtype(), true);
  return in_computed_dtype(x, f);
}

Tensor channel(const Tensor& x, std::int64_t i) { return slice_within(x, x.shape().rank() - 1, i, 1); }

/// x: [..., 3] times a matrix.
Tensor through(std::string_view op, const Tensor& x, const std::array<std::array<double, 3>, 3>& rows) {
  check_colours(op, x);
  const DType t = computed_in(x.dtype());
  std::vector<Tensor> parts;
  for (std::size_t j = 0; j < 3; ++j) {
    Tensor sum;
    for (std::size_t i = 0; i < 3; ++i) {
      const Tensor part = cast(channel(x, static_cast<std::int64_t>(i)), t) * rows[i][j];
      sum = i == 0 ? part : sum + part;
    }
    parts.push_back(sum);
  }
  return cast(concat(parts, -1), x.dtype());
}

Tensor hsv_of(const Tensor& x) {
  const Tensor r = channel(x, 0), g = channel(x, 1), b = channel(x, 2);
  const Tensor value = reduce_max(x, {.axis = {-1}, .keepdims = true});
  const Tensor range = value - reduce_min(x, {.axis = {-1}, .keepdims = true});
  const Tensor saturation = where(value > 0, range / where(value > 0, value, 1), 0);
  const Tensor is_gray = logical_not(range > 0), sixth = where(is_gray, 1, range) * 6;
  const Tensor third = fill_like(r, 1.0 / 3), two_thirds = fill_like(r, 2.0 / 3);
  const Tensor turn = where(equal(r, value), (g - b) / sixth,
                            where(equal(g, value), (b - r) / sixth + third, (r - g) / sixth + two_thirds));
  const Tensor hue = where(is_gray, 0, turn);
  return concat({where(hue < 0, hue + 1, hue), saturation, value}, -1);
}

Tensor rgb_of(const Tensor& x) {
  const Tensor turn = channel(x, 0) * 6, saturation = channel(x, 1), value = channel(x, 2);
  const auto cut = [](const Tensor& y) { return clip_by_value(y, 0, 1); };
  const Tensor pure = concat({cut(abs(turn - 3) - 1), cut(2 - abs(turn - 2)), cut(2 - abs(turn - 4))}, -1);
  return ((1 - saturation) + saturation * pure) * value;
}

}  // namespace

Tensor convert_image_dtype(const Tensor& image, DType dtype, bool saturate) {
  const HostFloats floats;
  const DType from = image.dtype();
  require(from != boolean && dtype != boolean, "convert_image_dtype: booleans are no intensities, got ", image.spec(),
          " to ", dtype);
  if (from == dtype || (is_floating(from) && is_floating(dtype))) return cast(image, dtype);
  if (is_floating(dtype)) {
    const DType t = dtype == f64 ? f64 : f32;
    return cast(cast(image, t) * (1 / full_intensity(from)), dtype);
  }
  if (is_floating(from)) {
    const Tensor scaled = cast(image, from == f64 || size_of(dtype) >= 4 ? f64 : f32) * (full_intensity(dtype) + 0.5);
    return saturate || size_of(dtype) >= 4 ? cast(scaled, dtype) : cast(cast(scaled, i64), dtype);
  }
  const double ratio = (full_intensity(from) + 1) / (full_intensity(dtype) + 1);
  const Tensor kept = saturate && !is_signed(dtype) && is_signed(from) ? maximum(image, 0) : image;
  if (ratio > 1) return cast(floor_divide(kept, static_cast<std::int64_t>(ratio)), dtype);
  return cast(kept, dtype) * static_cast<std::int64_t>(1 / ratio);
}

Tensor rgb_to_grayscale(const Tensor& images) {
  check_channels("rgb_to_grayscale", images, 3);
  return on_intensities(
      images, [](const Tensor& x) { return channel(x, 0) * 0.2989 + channel(x, 1) * 0.587 + channel(x, 2) * 0.114; });
}

Tensor grayscale_to_rgb(const Tensor& images) {
  check_channels("grayscale_to_rgb", images, 1);
  Shape shape = images.shape();
  shape.set(-1, 3);
  return broadcast_to(images, shape);
}

Tensor rgb_to_hsv(const Tensor& images) {
  check_colours("rgb_to_hsv", images);
  return on_intensities(images, hsv_of);
}
Tensor hsv_to_rgb(const Tensor& images) {
  check_colours("hsv_to_rgb", images);
  return on_intensities(images, rgb_of);
}

Tensor rgb_to_yiq(const Tensor& images) {
  return through("rgb_to_yiq", images,
                 {{{0.299, 0.59590059, 0.2115}, {0.587, -0.27455667, -0.52273617}, {0.114, -0.32134392, 0.31119955}}});
}
Tensor yiq_to_rgb(const Tensor& images) {
  return through("yiq_to_rgb", images,
                 {{{1, 1, 1}, {0.95598634, -0.27201283, -1.10674021}, {0.6208248, -0.64720424, 1.70423049}}});
}
Tensor rgb_to_yuv(const Tensor& images) {
  return through(
      "rgb_to_yuv", images,
      {{{0.299, -0.14714119, 0.61497538}, {0.587, -0.28886916, -0.51496512}, {0.114, 0.43601035, -0.10001026}}});
}
Tensor yuv_to_rgb(const Tensor& images) {
  return through("yuv_to_rgb", images, {{{1, 1, 1}, {0, -0.394642334, 2.03206185}, {1.13988303, -0.58062185, 0}}});
}

Tensor adjust_brightness(const Tensor& image, double delta) {
  const HostFloats floats;
  require(image.dtype() != boolean, "adjust_brightness: expected numbers, got ", image.spec(), "; cast it first");
  return on_intensities(image, [=](const Tensor& x) { return x + delta; });
}

Tensor adjust_contrast(const Tensor& images, double contrast_factor) {
  const HostFloats floats;
  check_images("adjust_contrast", images);
  return on_intensities(images, [=](const Tensor& x) {
    const Tensor mean = reduce_mean(x, {.axis = {-3, -2}, .keepdims = true});
    return (x - mean) * contrast_factor + mean;
  });
}

Tensor adjust_gamma(const Tensor& image, double gamma, double gain) {
  const HostFloats floats;
  require(image.dtype() != boolean, "adjust_gamma: expected numbers, got ", image.spec(), "; cast it first");
  require(gamma >= 0, "adjust_gamma: gamma must not be negative, got ", gamma);
  return on_intensities(image, [=](const Tensor& x) { return pow(x, gamma) * gain; });
}

Tensor adjust_hue(const Tensor& image, double delta) {
  const HostFloats floats;
  check_channels("adjust_hue", image, 3);
  require(delta >= -1 && delta <= 1, "adjust_hue: delta must lie in [-1, 1], got ", delta);
  return on_intensities(image, [=](const Tensor& x) {
    const Tensor hsv = hsv_of(x);
    return rgb_of(concat({mod(channel(hsv, 0) + delta, 1), channel(hsv, 1), channel(hsv, 2)}, -1));
  });
}

Tensor adjust_saturation(const Tensor& image, double saturation_factor) {
  const HostFloats floats;
  check_channels("adjust_saturation", image, 3);
  return on_intensities(image, [=](const Tensor& x) {
    const Tensor hsv = hsv_of(x);
    const Tensor saturation = clip_by_value(channel(hsv, 1) * saturation_factor, 0, 1);
    return rgb_of(concat({channel(hsv, 0), saturation, channel(hsv, 2)}, -1));
  });
}

Tensor per_image_standardization(const Tensor& images) {
  const HostFloats floats;
  check_images("per_image_standardization", images);
  const DType t = is_integer(images.dtype()) ? f32 : images.dtype();
  const Tensor x = cast(images, computed_in(t));
  const ReduceOptions each{.axis = {-3, -2, -1}, .keepdims = true};
  const auto [mean, variance] = moments(x, each);
  const Tensor count = reduce_sum(ones_like(x), each);
  return cast((x - mean) / maximum(sqrt(variance), rsqrt(count)), t);
}

}  // namespace gradus
