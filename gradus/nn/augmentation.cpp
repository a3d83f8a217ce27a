/// The random numbers of each image, and their effect.
#include "gradus/nn/augmentation.h"
#include <algorithm>
#include <functional>
#include <numbers>
#include <optional>
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/grid_sample.h"
#include "gradus/ops/image.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

using Change = std::function<Tensor(const Tensor& images)>;

/// A change of [batch, height, width, channels].
struct AugmentationLayer final : Cloned<AugmentationLayer>, Described {
  AugmentationLayer(std::string_view layer, std::string_view k, std::vector<LayerOption> o, Change f, Change otherwise)
      : name_of_layer(layer),
        name_of_kind(k),
        options(std::move(o)),
        in_training(std::move(f)),
        in_inference(std::move(otherwise)) {}
  std::string_view kind() const override { return name_of_kind; }
  LayerConfig config() const override {
    return options.empty() ? LayerConfig{} : LayerConfig{std::string(name_of_layer), options};
  }
  void build(const Spec& input) override { check(input); }
  Tensor call(const Tensor& x) const override {
    check(x.spec());
    warn_if_mode_unsaid(name_of_layer);
    const Change& change = is_training() ? in_training : in_inference;
    if (!change) return x;
    return x.shape().rank() == 4 ? change(x) : squeeze(change(expand_dims(x, 0)), {0});
  }
  void check(const Spec& input) const {
    require(input.shape.rank() == 3 || input.shape.rank() == 4, name_of_layer, ": the input is ", input,
            ", expected [batch, height, width, channels] or [height, width, channels]");
  }
  std::string_view name_of_layer, name_of_kind;  // literals
  std::vector<LayerOption> options;              // empty: Keras has no such layer
  Change in_training, in_inference;              // empty: nothing
};

std::shared_ptr<Layer> augmentation(std::string_view layer, std::string_view kind, std::vector<LayerOption> options,
                                    Change in_training, Change in_inference = {}) {
  return std::make_shared<AugmentationLayer>(layer, kind, std::move(options), std::move(in_training),
                                             std::move(in_inference));
}

Factor checked(std::string_view layer, Factor factor, double least, double most) {
  require(factor.low <= factor.high && factor.low >= least && factor.high <= most, layer, ": the range is [",
          factor.low, ", ", factor.high, "], expected low <= high, within [", least, ", ", most, "]");
  return factor;
}

/// Keras's colors: from the darkest to the brightest.
RandomColorOptions checked(std::string_view layer, const RandomColorOptions& options) {
  check_options(layer, options);
  require(options.value_range[0] < options.value_range[1], layer, ": value_range is [", options.value_range[0], ", ",
          options.value_range[1], "], expected the smaller number first");
  return options;
}

/// One number for each image, [batch], in the type in which it is computed with.
Tensor drawn(const Tensor& images, const Factor& factor) {
  const DType t = computed_in(images.dtype());
  const Tensor unit = random::uniform({images.shape()[0]}, {.dtype = t});
  return unit * (factor.high - factor.low) + factor.low;
}
Tensor by_image(const Tensor& numbers) { return reshape(numbers, {numbers.shape()[0], 1, 1, 1}); }

Tensor flipped(const Tensor& images, int axis) {
  const Tensor chosen = random::uniform({images.shape()[0]}) < 0.5;
  return where(by_image(chosen), reverse(images, {axis}), images);
}

GridPadding padding_of(FillMode mode) {
  return mode == FillMode::constant  ? GridPadding::zeros
         : mode == FillMode::nearest ? GridPadding::border
                                     : GridPadding::reflection;
}

/// Reads each image at the positions matrix (x, y, 1), from -1 to 1: rows of the matrix are [batch] or numbers.
Tensor moved(std::string_view layer, const Tensor& given, const std::array<Tensor, 6>& matrix, FillMode mode) {
  const Tensor images = in_floats(given);
  const std::int64_t height = images.shape()[1], width = images.shape()[2];
  require(height > 0 && width > 0, layer, ": the input is ", given.spec(), ", height and width must be known");
  std::vector<Tensor> columns;
  for (const Tensor& each : matrix) columns.push_back(expand_dims(each, -1));
  const Tensor theta = reshape(concat(columns, -1), {images.shape()[0], 2, 3});
  const Tensor wide = cast(images, theta.dtype());
  const Tensor read =
      grid_sample(transpose(wide, {0, 3, 1, 2}), affine_grid(theta, {height, width}), {.padding = padding_of(mode)});
  return cast(transpose(read, {0, 2, 3, 1}), images.dtype());
}

Tensor translated(const Tensor& images, Factor height, Factor width, FillMode mode) {
  const Tensor down = drawn(images, height), right = drawn(images, width), zero = zeros_like(down), one = zero + 1;
  return moved("RandomTranslation", images, {one, zero, right * -2, zero, one, down * -2}, mode);
}

/// In the plane of pixels; positions count from -1 to 1 along either side.
Tensor rotated(const Tensor& images, Factor factor, FillMode mode) {
  const Tensor angle = drawn(images, factor) * (2 * std::numbers::pi), zero = zeros_like(angle);
  const double ratio = static_cast<double>(images.shape()[1]) / static_cast<double>(images.shape()[2]);
  const Tensor c = cos(angle), s = sin(angle);
  return moved("RandomRotation", images, {c, s * -ratio, zero, s * (1 / ratio), c, zero}, mode);
}

Tensor zoomed(const Tensor& images, Factor height, std::optional<Factor> width, FillMode mode) {
  const Tensor of_height = drawn(images, height) + 1, zero = zeros_like(of_height);
  const Tensor of_width = width ? drawn(images, *width) + 1 : of_height;
  return moved("RandomZoom", images, {of_width, zero, zero, zero, of_height, zero}, mode);
}

/// The middle, as large as this ratio lets it be, resized.
Tensor largest_window(const Tensor& images, std::int64_t height, std::int64_t width) {
  const std::int64_t rows = images.shape()[1], columns = images.shape()[2];
  require(rows > 0 && columns > 0, "RandomCrop: the input is ", images.spec(), ", height and width must be known");
  const std::int64_t h = std::min(rows, std::max<std::int64_t>(columns * height / width, 1));
  const std::int64_t w = std::min(columns, std::max<std::int64_t>(rows * width / height, 1));
  return resize(crop_to_bounding_box(images, (rows - h) / 2, (columns - w) / 2, h, w), {height, width});
}

/// From a row and a column for all images of the batch, as in Keras.
Tensor cropped(const Tensor& images, std::int64_t height, std::int64_t width) {
  const std::int64_t rows = images.shape()[1], columns = images.shape()[2];
  if (rows < height || columns < width) return largest_window(images, height, width);
  const auto from = [](std::int64_t most) { return random::integers({}, {.low = 0, .high = most + 1}); };
  const Tensor by_row = gather(images, from(rows - height) + range(height), 1);
  return gather(by_row, from(columns - width) + range(width), 2);
}

Tensor brightened(const Tensor& given, Factor factor, const std::array<double, 2>& range) {
  const Tensor images = in_floats(given);
  const Tensor delta = by_image(drawn(images, factor)) * (range[1] - range[0]);
  return clip_by_value(images + cast(delta, images.dtype()), range[0], range[1]);
}

Tensor contrasted(const Tensor& given, Factor factor, const std::array<double, 2>& range) {
  const Tensor images = in_floats(given);
  const Tensor share = cast(by_image(drawn(images, factor)) + 1, images.dtype());
  const Tensor mean = reduce_mean(images, {.axis = {1, 2}, .keepdims = true});
  return clip_by_value((images - mean) * share + mean, range[0], range[1]);
}

LayerOption range_option(const char* name, Factor factor) {
  return {name, std::vector<double>{factor.low, factor.high}};
}
LayerOption fill_option(const RandomMoveOptions& options) {
  return {"fill_mode", std::string(name_of(options.fill_mode))};
}
LayerOption colors_option(const RandomColorOptions& options) {
  return {"value_range", std::vector<double>(options.value_range.begin(), options.value_range.end())};
}

/// Keras's [lower, upper] stands for factors from 1 - lower to 1 + upper, both within [0, 1] and in this order.
std::vector<LayerOption> contrast_options(Factor factor, const RandomColorOptions& options) {
  if (factor.low > 0 || -factor.low > factor.high) return {};
  return {range_option("factor", {-factor.low, factor.high}), colors_option(options)};
}

std::shared_ptr<Layer> zoom(Factor height, std::optional<Factor> width, RandomMoveOptions options) {
  constexpr std::string_view layer = "RandomZoom";
  const Factor h = checked(layer, height, -1, 1);
  if (width) checked(layer, *width, -1, 1);
  std::vector<LayerOption> described{range_option("height_factor", h), fill_option(options)};
  if (width) described.push_back(range_option("width_factor", *width));
  return augmentation(layer, "random_zoom", std::move(described),
                      [=](const Tensor& images) { return zoomed(images, h, width, options.fill_mode); });
}

}  // namespace

RandomFlip::RandomFlip(FlipMode mode)
    : Module(augmentation("RandomFlip", "random_flip", {{"mode", std::string(name_of(mode))}},
                          [mode](const Tensor& images) {
                            const Tensor across = mode == FlipMode::vertical ? images : flipped(images, 2);
                            return mode == FlipMode::horizontal ? across : flipped(across, 1);
                          })) {}

RandomTranslation::RandomTranslation(Factor height, Factor width, RandomMoveOptions options)
    : Module(augmentation(
          "RandomTranslation", "random_translation",
          {range_option("height_factor", height), range_option("width_factor", width), fill_option(options)},
          [h = checked("RandomTranslation", height, -1, 1), w = checked("RandomTranslation", width, -1, 1),
           options](const Tensor& images) { return translated(images, h, w, options.fill_mode); })) {}
RandomRotation::RandomRotation(Factor factor, RandomMoveOptions options)
    : Module(augmentation("RandomRotation", "random_rotation", {range_option("factor", factor), fill_option(options)},
                          [f = checked("RandomRotation", factor, -1, 1), options](const Tensor& images) {
                            return rotated(images, f, options.fill_mode);
                          })) {}
RandomZoom::RandomZoom(Factor height, RandomMoveOptions options) : Module(zoom(height, {}, options)) {}
RandomZoom::RandomZoom(Factor height, Factor width, RandomMoveOptions options) : Module(zoom(height, width, options)) {}

RandomCrop::RandomCrop(std::int64_t height, std::int64_t width)
    : Module(augmentation(
          "RandomCrop", "random_crop", {{"height", height}, {"width", width}},
          [=](const Tensor& images) { return cropped(images, height, width); },
          [=](const Tensor& images) { return largest_window(images, height, width); })) {
  require(height > 0 && width > 0, "RandomCrop: the size must be positive, got ", height, " and ", width);
}

RandomBrightness::RandomBrightness(Factor factor, RandomColorOptions options)
    : Module(augmentation(
          "RandomBrightness", "random_brightness", {range_option("factor", factor), colors_option(options)},
          [f = checked("RandomBrightness", factor, -1, 1), range = checked("RandomBrightness", options).value_range](
              const Tensor& images) { return brightened(images, f, range); })) {}
RandomContrast::RandomContrast(Factor factor, RandomColorOptions options)
    : Module(augmentation(
          "RandomContrast", "random_contrast", contrast_options(factor, options),
          [f = checked("RandomContrast", factor, -1, 1), range = checked("RandomContrast", options).value_range](
              const Tensor& images) { return contrasted(images, f, range); })) {}

}  // namespace gradus
