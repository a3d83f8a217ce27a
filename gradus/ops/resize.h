/// Images and other grids at another size. Weights and positions are worked out once, from the sizes, which must be
/// known along the axes that change.
#pragma once
#include <array>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

enum class ResizeMethod { bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian, mitchellcubic };

struct ResizeOptions {
  ResizeMethod method = ResizeMethod::bilinear;
  bool preserve_aspect_ratio = false;  // `size` is then the largest that the result may have
  bool antialias = false;  // a smaller image is a weighted mean of all that falls together; not of nearest and area
};

/// tf.image.resize: images [..., height, width, channels] to {height, width}, with centers of pixels at halves. nearest
/// keeps the dtype, the others give f32 for integers; bicubic is Keys's with a = -0.5, area the mean of what a new
/// pixel covers. Neighbours outside of the image count as absent, of bilinear as those at its border. Any number type.
Tensor resize(const Tensor& images, std::array<std::int64_t, 2> size, ResizeOptions options = {});
enum class Interpolation { nearest, linear, cubic };

/// Where element i of the result lies in the input of n elements; s is the scale, m = s * n.
enum class Coordinates {
  half_pixel,            // (i + 0.5) / s - 0.5
  half_pixel_symmetric,  // the same about the middle, where the new size was rounded
  pytorch_half_pixel,    // half_pixel; -0.5 if m is 1
  align_corners,         // i (n - 1) / (m - 1); 0 if m is 1
  asymmetric,            // i / s
  tf_half_pixel_for_nn,  // (i + 0.5) / s
  tf_crop_and_resize,    // begin (n - 1) + i (end - begin) (n - 1) / (m - 1), the middle if m is 1
};

/// Which of two neighbours: at equal distance the lower or the higher one, or always one of them.
enum class NearestMode { round_prefer_floor, round_prefer_ceil, floor, ceil };

enum class AspectRatio { stretch, not_larger, not_smaller };

/// The attributes of ONNX's Resize.
struct ResampleOptions {
  std::vector<int> axis = {};            // which axes; empty: all
  std::vector<std::int64_t> sizes = {};  // one an axis, or
  std::vector<double> scales = {};       // one an axis: the new size is floor(scale * size)
  Interpolation mode = Interpolation::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  NearestMode nearest_mode = NearestMode::round_prefer_floor;
  AspectRatio aspect_ratio = AspectRatio::stretch;  // of sizes: one scale for all axes
  double cubic_coeff_a = -0.75;
  bool exclude_outside = false;  // neighbours outside count as absent, else as those at the border
  bool antialias = false;
  std::vector<double> roi = {};  // of tf_crop_and_resize: begin of each axis, then end of each, 0 to 1
  double extrapolation_value = 0;
};

/// `x` resampled along `axis`, each axis on its own: linear and cubic weights multiply. Any number type; integers are
/// interpolated in floating point and then rounded towards zero. nearest takes any dtype. InvalidArgument for sizes
/// that are not known or not positive, and for options that do not fit together.
Tensor resample(const Tensor& x, const ResampleOptions& options);

/// `x` cut or filled with zeros evenly at both ends of each axis to `sizes`; where that is uneven, at the end one more.
/// No axis: all of them.
Tensor center_crop_pad(const Tensor& x, const std::vector<std::int64_t>& sizes, const std::vector<int>& axis = {});

}  // namespace gradus
