/// ONNX's ops on images and on signals.
#include <map>
#include "gradus/onnx/row.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/grid_sample.h"
#include "gradus/ops/resize.h"
#include "gradus/ops/signal.h"

namespace gradus::onnx {
namespace {

/// The value of an attribute among those that there are.
template <class Value>
Value chosen(const Call& c, std::string_view attribute, std::string_view otherwise,
             const std::map<std::string_view, Value>& values) {
  const std::string word = c.word(attribute, otherwise);
  const auto found = values.find(word);
  c.require(found != values.end(), "attribute `", attribute, "` is \"", word, "\", which is none of its values");
  return found->second;
}

Interpolation interpolation(const Call& c, std::string_view otherwise) {
  return chosen<Interpolation>(c, "mode", otherwise,
                               {{"nearest", Interpolation::nearest},
                                {"linear", Interpolation::linear},
                                {"bilinear", Interpolation::linear},
                                {"cubic", Interpolation::cubic},
                                {"bicubic", Interpolation::cubic}});
}

Coordinates coordinates(const Call& c) {
  return chosen<Coordinates>(c, "coordinate_transformation_mode", "half_pixel",
                             {{"half_pixel", Coordinates::half_pixel},
                              {"half_pixel_symmetric", Coordinates::half_pixel_symmetric},
                              {"pytorch_half_pixel", Coordinates::pytorch_half_pixel},
                              {"align_corners", Coordinates::align_corners},
                              {"asymmetric", Coordinates::asymmetric},
                              {"tf_half_pixel_for_nn", Coordinates::tf_half_pixel_for_nn},
                              {"tf_crop_and_resize", Coordinates::tf_crop_and_resize}});
}

/// As before opset 11.
Tensor upsampled(const Call& c, const std::vector<double>& scales) {
  return resample(c[0], {.scales = scales,
                         .mode = interpolation(c, "nearest"),
                         .coordinates = Coordinates::asymmetric,
                         .nearest_mode = NearestMode::floor});
}

std::vector<double> numbers_if_given(const Call& c, int input) {
  return c.has(input) ? c.numbers_of(input) : std::vector<double>();
}

Tensor resized(const Call& c) {
  if (c.version() < 11) return upsampled(c, c.numbers_of(1));
  ResampleOptions options{.mode = interpolation(c, "nearest"), .coordinates = coordinates(c)};
  options.scales = numbers_if_given(c, 2);
  if (c.has(3)) options.sizes = c.integers_of(3);
  if (options.coordinates == Coordinates::tf_crop_and_resize) options.roi = numbers_if_given(c, 1);
  if (c.has_attribute("axes")) options.axis = c.axes(c.integers("axes"), c[0].shape().rank());
  options.nearest_mode = chosen<NearestMode>(c, "nearest_mode", "round_prefer_floor",
                                             {{"round_prefer_floor", NearestMode::round_prefer_floor},
                                              {"round_prefer_ceil", NearestMode::round_prefer_ceil},
                                              {"floor", NearestMode::floor},
                                              {"ceil", NearestMode::ceil}});
  options.aspect_ratio = chosen<AspectRatio>(c, "keep_aspect_ratio_policy", "stretch",
                                             {{"stretch", AspectRatio::stretch},
                                              {"not_larger", AspectRatio::not_larger},
                                              {"not_smaller", AspectRatio::not_smaller}});
  options.cubic_coeff_a = c.number("cubic_coeff_a", -0.75);
  options.exclude_outside = c.flag("exclude_outside");
  options.antialias = c.flag("antialias");
  options.extrapolation_value = c.number("extrapolation_value", 0);
  return resample(c[0], options);
}

Tensor sampled(const Call& c) {
  return grid_sample(
      c[0], c[1],
      {.mode = interpolation(c, "linear"),
       .padding = chosen<GridPadding>(
           c, "padding_mode", "zeros",
           {{"zeros", GridPadding::zeros}, {"border", GridPadding::border}, {"reflection", GridPadding::reflection}}),
       .align_corners = c.flag("align_corners")});
}

/// The size is that of the whole result of sampling, with examples and channels.
Tensor grid(const Call& c) {
  const std::vector<std::int64_t> size = c.integers_of(1);
  c.require(size.size() > 2, "size has ", size.size(), " numbers; expected examples, channels and extents");
  return affine_grid(c[0], {size.begin() + 2, size.end()}, c.flag("align_corners"));
}

Tensor aligned(const Call& c) {
  RoiAlignOptions options{.output_height = c.integer("output_height", 1),
                          .output_width = c.integer("output_width", 1),
                          .sampling_ratio = c.integer("sampling_ratio", 0),
                          .spatial_scale = c.number("spatial_scale", 1)};
  options.half_pixel = c.version() >= 16 && chosen<bool>(c, "coordinate_transformation_mode", "half_pixel",
                                                         {{"half_pixel", true}, {"output_half_pixel", false}});
  options.takes_maximum = chosen<bool>(c, "mode", "avg", {{"avg", false}, {"max", true}});
  return roi_align(c[0], c[1], c[2], options);
}

Tensor largest_of_regions(const Call& c) {
  const std::vector<std::int64_t> shape = c.integers("pooled_shape");
  c.require(shape.size() == 2, "pooled_shape has ", shape.size(), " numbers, expected height and width");
  return max_roi_pool(c[0], c[1], shape[0], shape[1], c.number("spatial_scale", 1));
}

// ---------------------------------------------------------------- signals

Tensor transformed(const Call& c) {
  const std::int64_t given = c.version() < 20 ? c.integer("axis", 1) : c.has(2) ? c.integer_of(2) : -2;
  DftOptions options{
      .axis = c.axis(given, c[0].shape().rank()), .inverse = c.flag("inverse"), .onesided = c.flag("onesided")};
  if (c.has(1)) {
    options.dft_length = c.integer_of(1);
    c.require(options.dft_length > 0, "dft_length is ", options.dft_length, ", expected a positive number");
  }
  // In f64, as ONNX's own implementation, whose zeros are within 1e-14.
  return cast(dft(cast(c[0], f64), options), c[0].dtype());
}

Tensor transformed_frames(const Call& c) {
  StftOptions options{.frame_step = c.integer_of(1), .window = c.optional(2), .onesided = c.flag("onesided", true)};
  if (c.has(3)) options.frame_length = c.integer_of(3);
  return stft(c[0], std::move(options));
}

Results window(const Call& c, const std::vector<double>& a) {
  return cosine_window(c.integer_of(0), a,
                       {.periodic = c.flag("periodic", true), .dtype = c.dtype("output_datatype", f32)});
}

Tensor mel_matrix(const Call& c) {
  return mel_weight_matrix(c.integer_of(0), c.integer_of(1), c.integer_of(2), c.number_of(3), c.number_of(4),
                           c.dtype("output_datatype", f32));
}

const Table images_table{
    {"Resize", {10, 11, 13, 18, 19}, rounded_once(resized), "", false, {1, 2}},
    {"Upsample",
     {7, 9, 10},
     rounded_once(
         [](const Call& c) { return upsampled(c, c.version() < 9 ? c.numbers("scales", {}) : c.numbers_of(1)); }),
     "",
     false,
     {1}},
    {"GridSample", {16, 20, 22}, rounded_once(sampled)},
    {"AffineGrid", {20}, rounded_once(grid)},
    {"RoiAlign", {10, 16, 22}, rounded_once(aligned)},
    {"MaxRoiPool", {1, 22}, rounded_once(largest_of_regions)},
};

const Table signals_table{
    {"DFT", {17, 20}, rounded_once(transformed)},
    {"STFT", {17}, rounded_once(transformed_frames)},
    {"HannWindow", {17}, [](const Call& c) { return window(c, {0.5, 0.5}); }},
    {"HammingWindow", {17}, [](const Call& c) { return window(c, {25.0 / 46, 21.0 / 46}); }},
    {"BlackmanWindow", {17}, [](const Call& c) { return window(c, {0.42, 0.5, 0.08}); }},
    {"MelWeightMatrix", {17}, mel_matrix},
};

}  // namespace
}  // namespace gradus::onnx
