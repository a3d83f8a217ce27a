/// Rows of colours, boxes and edges of images; their values are checked against TensorFlow's in
/// tensorflow_values_test.cpp.
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/image.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_images {
namespace {

Row image(std::string name, std::function<Tensor(In)> apply, std::vector<std::vector<Shape>> shapes,
          std::vector<Operand> operands = {{0.05, 0.95}}) {
  Row row{.name = std::move(name), .apply = std::move(apply), .operands = std::move(operands)};
  row.shapes = std::move(shapes);
  row.tolerance = 128, row.magnitude = 8, row.slack = 16;
  return row;
}

std::vector<Row> colours() {
  const std::vector<std::vector<Shape>> shapes{{{2, 3, 3}}, {{2, 1, 2, 3}}};
  std::vector<Row> rows{
      image(
          "rgb_to_grayscale", [](In in) { return rgb_to_grayscale(in[0]); }, shapes),
      image("grayscale_to_rgb", [](In in) { return grayscale_to_rgb(in[0]); }, {{{2, 2, 1}}}),
      image(
          "rgb_to_hsv", [](In in) { return rgb_to_hsv(in[0]); }, shapes),
      image(
          "hsv_to_rgb", [](In in) { return hsv_to_rgb(in[0]); }, shapes),
      image(
          "rgb_to_yiq", [](In in) { return rgb_to_yiq(in[0]); }, shapes),
      image(
          "yiq_to_rgb", [](In in) { return yiq_to_rgb(in[0]); }, shapes),
      image(
          "rgb_to_yuv", [](In in) { return rgb_to_yuv(in[0]); }, shapes),
      image(
          "yuv_to_rgb", [](In in) { return yuv_to_rgb(in[0]); }, shapes),
      image(
          "adjust_brightness", [](In in) { return adjust_brightness(in[0], 0.25); }, shapes),
      image(
          "adjust_contrast", [](In in) { return adjust_contrast(in[0], 1.5); }, shapes),
      image(
          "adjust_gamma", [](In in) { return adjust_gamma(in[0], 0.5, 2); }, shapes),
      image(
          "adjust_hue", [](In in) { return adjust_hue(in[0], 0.3); }, shapes),
      image(
          "adjust_saturation", [](In in) { return adjust_saturation(in[0], 0.7); }, shapes),
      image(
          "per_image_standardization", [](In in) { return per_image_standardization(in[0]); }, shapes),
  };
  for (std::size_t i : {2, 3, 11, 12}) {
    rows[i].tolerance = 1024;
    rows[i].takes_narrow = false;  // the hue jumps
  }
  rows[4].mistakes = {{[] { rgb_to_yiq(ones({2, 2, 4})); }, "rgb_to_yiq"},
                      {[] { rgb_to_yiq(ones({2, 2, 3}, i32)); }, "rgb_to_yiq"}};
  rows[10].mistakes = {{[] { adjust_gamma(ones({2, 2, 3}), -1); }, "adjust_gamma"}};
  rows[11].mistakes = {{[] { adjust_hue(ones({2, 2, 3}), 2); }, "adjust_hue"}};
  return rows;
}

std::vector<Row> sizes() {
  std::vector<Row> rows{
      image("central_crop", [](In in) { return central_crop(in[0], 0.5); }, {{{5, 4, 2}}, {{2, 6, 6, 1}}}),
      image("crop_to_bounding_box", [](In in) { return crop_to_bounding_box(in[0], 1, 0, 2, 3); },
            {{{4, 3, 2}}, {{2, 3, 4, 1}}}),
      image("pad_to_bounding_box", [](In in) { return pad_to_bounding_box(in[0], 1, 2, 5, 6); },
            {{{4, 3, 2}}, {{2, 3, 4, 1}}}),
      image("resize_with_crop_or_pad", [](In in) { return resize_with_crop_or_pad(in[0], 3, 5); },
            {{{4, 3, 2}}, {{2, 2, 8, 1}}}),
      image("resize_with_pad", [](In in) { return resize_with_pad(in[0], 4, 6); }, {{{3, 3, 2}}, {{1, 8, 5, 1}}}),
      image("sobel_edges", [](In in) { return sobel_edges(in[0]); }, {{{3, 4, 2}}, {{2, 2, 2, 1}}}),
      image("total_variation", [](In in) { return total_variation(in[0]); }, {{{3, 4, 2}}, {{2, 1, 3, 1}}}),
      image("image_gradients",
            [](In in) {
              const auto [dy, dx] = image_gradients(in[0]);
              return dy + dx * 2;
            },
            {{{2, 3, 4, 2}}, {{1, 1, 1, 1}}}),
      image("psnr", [](In in) { return psnr(in[0], in[1], 1); }, {{{2, 3, 3, 1}, {2, 3, 3, 1}}}, {{0, 0.4}, {0.6, 1}}),
      image("ssim", [](In in) { return ssim(in[0], in[1], 1, {.filter_size = 3}); }, {{{5, 4, 2}, {5, 4, 2}}},
            {{0, 1}, {0, 1}}),
  };
  rows[8].takes_narrow = rows[9].takes_narrow = false;  // their result is f32
  rows[1].mistakes = {{[] { crop_to_bounding_box(ones({2, 2, 1}), 1, 1, 2, 2); }, "crop_to_bounding_box"}};
  rows[2].mistakes = {{[] { pad_to_bounding_box(ones({2, 2, 1}), 1, 1, 2, 2); }, "pad_to_bounding_box"}};
  rows[9].mistakes = {{[] { ssim(ones({4, 4, 1}), ones({4, 4, 1}), 1); }, "ssim"}};
  return rows;
}

std::vector<Row> crops() {
  const auto row = [](std::string name, CropMethod method, double y2) {
    Row made =
        image(std::move(name),
              [=](In in) {
                // Boxes that leave the image at one side.
                const Tensor boxes =
                    cast(constant({{0.1, 0.2, y2, 0.9}, {0.7, -0.15, 0.05, 0.55}}), in[0].dtype()) + in[1] * 0.01;
                return crop_and_resize(in[0], boxes, constant({1, 0}), {3, 4}, {method, 0.5});
              },
              {{{2, 5, 4, 2}, {2, 4}}}, {{}, {}});
    made.takes_narrow = false, made.slack = 64;
    return made;
  };
  Row bilinear = row("crop_and_resize", CropMethod::bilinear, 0.83);
  bilinear.mistakes = {
      {[] { crop_and_resize(ones({1, 2, 2, 1}), ones({1, 3}), constant({0}), {2, 2}); }, "crop_and_resize"},
      {[] { crop_and_resize(ones({1, 2, 2, 1}), ones({1, 4}), constant({0.5}), {2, 2}); }, "crop_and_resize"},
      {[] { crop_and_resize(ones({1, 2, 2, 1}), ones({1, 4}), constant({3}), {2, 2}).to_vector<float>(); }, ""}};
  return {bilinear, row("crop_and_resize, nearest", CropMethod::nearest, 0.83)};
}

std::vector<Row> resizing() {
  std::vector<Row> rows;
  const auto add = [&](std::string_view name, ResizeMethod method, bool antialias) {
    Row made = image(text("resize, ", name, antialias ? ", antialias" : ""),
                     [=](In in) { return resize(in[0], {3, 7}, {.method = method, .antialias = antialias}); },
                     {{{5, 4, 2}}, {{2, 2, 9, 1}}});
    made.called = "resize";
    rows.push_back(std::move(made));
  };
  add("area", ResizeMethod::area, false);
  for (bool antialias : {false, true}) {
    add("lanczos3", ResizeMethod::lanczos3, antialias);
    add("lanczos5", ResizeMethod::lanczos5, antialias);
    add("gaussian", ResizeMethod::gaussian, antialias);
    add("mitchellcubic", ResizeMethod::mitchellcubic, antialias);
  }
  return rows;
}

const bool registered = add_rows(colours()) && add_rows(sizes()) && add_rows(crops()) && add_rows(resizing());

}  // namespace
}  // namespace gradus::rows::rows_images
