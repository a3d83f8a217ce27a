/// Layers that are functions of a few numbers.
#include "gradus/nn/preprocessing.h"
#include "gradus/base/ranges.h"
#include <algorithm>
#include <cmath>
#include "gradus/nn/function_layer.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/image.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

Tensor centered(const Tensor& x, std::int64_t height, std::int64_t width) {
  require(x.shape().rank() >= 3 && x.shape()[-3] > 0 && x.shape()[-2] > 0, "CenterCrop: the input is ", x.spec(),
          ", expected images [..., height, width, channels] of known size");
  const std::int64_t rows = x.shape()[-3], columns = x.shape()[-2];
  const auto middle = [&](std::int64_t h, std::int64_t w) {
    return crop_to_bounding_box(x, (rows - h) / 2, (columns - w) / 2, h, w);
  };
  if (rows >= height && columns >= width) return middle(height, width);
  const Tensor part = middle(std::min(rows, std::max<std::int64_t>(columns * height / width, 1)),
                             std::min(columns, std::max<std::int64_t>(rows * width / height, 1)));
  return resize(part, {height, width});
}

using Croppings = std::vector<std::array<std::int64_t, 2>>;

std::shared_ptr<Layer> cropping(std::string_view layer, std::string_view kind, const Croppings& spatial) {
  for (const auto& [before, after] : spatial)
    require(before >= 0 && after >= 0, layer, ": cropping must not be negative, got {", before, ", ", after, "}");
  const auto crop = [=](const Tensor& x) {
    require(x.shape().rank() == static_cast<int>(spatial.size()) + 2, layer, ": the input is ", x.spec(),
            ", expected [batch, spatial..., channels]");
    Tensor y = x;
    for (std::size_t i = 0; i < spatial.size(); ++i) {
      const int axis = static_cast<int>(i) + 1;
      const auto [before, after] = spatial[i];
      const std::int64_t n = y.shape()[axis];
      require(n < 0 || n > before + after, layer, ": nothing of axis ", axis, " of ", x.spec(), " is left");
      y = slice_axis(y, axis, before, dimension::subtract(n, before + after), layer);
    }
    return y;
  };
  std::vector<std::vector<std::int64_t>> made_with;
  for (const auto& both : spatial) made_with.push_back(listed(both));
  const OptionValue cropped = made_with.size() == 1 ? OptionValue(made_with[0]) : OptionValue(made_with);
  return layer_of(kind, crop, {std::string(layer), {{"cropping", cropped}}});
}

Croppings from_either_side(const Sizes& sizes) {
  Croppings all;
  for (const std::int64_t size : sizes) all.push_back({size, size});
  return all;
}

std::shared_ptr<Layer> adaptive(std::string_view layer, std::string_view kind, const Sizes& size,
                                Tensor (*pool)(const Tensor&, const Sizes&)) {
  for (const std::int64_t each : size) require(each > 0, layer, ": sizes must be positive, got ", each);
  const auto pooled = [=](const Tensor& x) {
    require(x.shape().rank() == static_cast<int>(size.size()) + 2, layer, ": the input is ", x.spec(),
            ", expected [batch, spatial..., channels]");
    return pool(x, size);
  };
  return layer_of(kind, pooled, {std::string(layer), {{"output_size", size}}});
}

/// Keras has no antialiasing, and keeps a ratio by cutting.
LayerConfig resizing_config(std::int64_t height, std::int64_t width, const ResizeOptions& options) {
  if (options.preserve_aspect_ratio || options.antialias) return {};
  return {"Resizing", {{"height", height}, {"width", width}, {"interpolation", std::string(name_of(options.method))}}};
}

}  // namespace

Identity::Identity() : Module(layer_of("identity", [](const Tensor& x) { return x; }, {"Identity"}, Reach::element)) {}
Rescaling::Rescaling(double scale, double offset)
    : Module(layer_of(
          "rescaling", [=](const Tensor& x) { return in_floats(x) * scale + offset; },
          {"Rescaling", {{"scale", scale}, {"offset", offset}}}, Reach::element)) {
  check_number("Rescaling", "scale", Allowed::finite("scale"), scale);
  check_number("Rescaling", "offset", Allowed::finite("offset"), offset);
}
Resizing::Resizing(std::int64_t height, std::int64_t width, ResizeOptions options)
    : Module(layer_of(
          "resizing", [=](const Tensor& x) { return resize(x, {height, width}, options); },
          resizing_config(height, width, options))) {
  require(height > 0 && width > 0, "Resizing: the size must be positive, got ", height, " and ", width);
}
CenterCrop::CenterCrop(std::int64_t height, std::int64_t width)
    : Module(layer_of("center_crop", [=](const Tensor& x) { return centered(x, height, width); },
                      {"CenterCrop", {{"height", height}, {"width", width}}})) {
  require(height > 0 && width > 0, "CenterCrop: the size must be positive, got ", height, " and ", width);
}

Cropping1D::Cropping1D(std::array<std::int64_t, 2> given) : Module(cropping("Cropping1D", "cropping1d", {given})) {}
Cropping2D::Cropping2D(Pair given) : Module(cropping("Cropping2D", "cropping2d", from_either_side(given))) {}
Cropping2D::Cropping2D(std::array<std::int64_t, 2> rows, std::array<std::int64_t, 2> columns)
    : Module(cropping("Cropping2D", "cropping2d", {rows, columns})) {}
Cropping3D::Cropping3D(Triple given) : Module(cropping("Cropping3D", "cropping3d", from_either_side(given))) {}

AdaptiveAveragePooling1D::AdaptiveAveragePooling1D(Single size)
    : Module(adaptive("AdaptiveAveragePooling1D", "adaptive_average_pooling1d", size, adaptive_avg_pool)) {}
AdaptiveAveragePooling2D::AdaptiveAveragePooling2D(Pair size)
    : Module(adaptive("AdaptiveAveragePooling2D", "adaptive_average_pooling2d", size, adaptive_avg_pool)) {}
AdaptiveAveragePooling3D::AdaptiveAveragePooling3D(Triple size)
    : Module(adaptive("AdaptiveAveragePooling3D", "adaptive_average_pooling3d", size, adaptive_avg_pool)) {}
AdaptiveMaxPooling1D::AdaptiveMaxPooling1D(Single size)
    : Module(adaptive("AdaptiveMaxPooling1D", "adaptive_max_pooling1d", size, adaptive_max_pool)) {}
AdaptiveMaxPooling2D::AdaptiveMaxPooling2D(Pair size)
    : Module(adaptive("AdaptiveMaxPooling2D", "adaptive_max_pooling2d", size, adaptive_max_pool)) {}
AdaptiveMaxPooling3D::AdaptiveMaxPooling3D(Triple size)
    : Module(adaptive("AdaptiveMaxPooling3D", "adaptive_max_pooling3d", size, adaptive_max_pool)) {}

}  // namespace gradus
