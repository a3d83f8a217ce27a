/// Resizing images and other grids. Weights and positions are computed once, from the sizes, which must be known along
/// the axes that change.
#pragma once
#include <array>
#include <vector>
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// Interpolation of resize.
enum class ResizeMethod { bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian, mitchellcubic };

/// Options of resize.
struct ResizeOptions {
  ResizeMethod method = ResizeMethod::bilinear;  // interpolation between pixels
  bool preserve_aspect_ratio = false;            // `size` is the largest that the result may have
  bool antialias = false;  // when shrinking, average over all pixels that a new one covers; not for nearest and area
};

/// tf.image.resize: images [..., height, width, channels] to {height, width}, with centers of pixels at halves. nearest
/// keeps the dtype, the others give f32 for integers. bicubic is Keys's with a = -0.5; area is the mean of the pixels
/// that a new one covers. Neighbours outside of the image are left out; for bilinear without antialias they equal those
/// at its border. Any number type.
Tensor resize(const Tensor& images, std::array<std::int64_t, 2> size, ResizeOptions options = {});
/// Interpolation of resample and grid_sample.
enum class Interpolation { nearest, linear, cubic };

/// Position of element i of the result in the input of n elements; s is the scale, m = s * n.
enum class Coordinates {
  half_pixel,            // (i + 0.5) / s - 0.5
  half_pixel_symmetric,  // half_pixel about the middle, if the new size was rounded
  pytorch_half_pixel,    // half_pixel; -0.5 if m is 1
  align_corners,         // i (n - 1) / (m - 1); 0 if m is 1
  asymmetric,            // i / s
  tf_half_pixel_for_nn,  // (i + 0.5) / s
  tf_crop_and_resize,    // begin (n - 1) + i (end - begin) (n - 1) / (m - 1), the middle if m is 1
};

/// Choice of nearest between two neighbours: at equal distance the lower or the higher one, or always one of them.
enum class NearestMode { round_prefer_floor, round_prefer_ceil, floor, ceil };

/// Scales of several axes: each its own, or one for all that makes the result not larger or not smaller than `sizes`.
enum class AspectRatio { stretch, not_larger, not_smaller };

/// Options of resample: the attributes of ONNX's Resize.
struct ResampleOptions {
  std::vector<int> axis = {};                         // axes to resample; empty: all
  std::vector<std::int64_t> sizes = {};               // one per axis; either these
  std::vector<double> scales = {};                    // or these, one per axis: the new size is floor(scale * size)
  Interpolation mode = Interpolation::nearest;        // interpolation between elements
  Coordinates coordinates = Coordinates::half_pixel;  // position of an element in the input
  NearestMode nearest_mode = NearestMode::round_prefer_floor;  // choice of the nearest neighbour
  AspectRatio aspect_ratio = AspectRatio::stretch;             // for `sizes`: one scale for all axes
  double cubic_coeff_a = -0.75;                                // coefficient a of cubic interpolation
  bool exclude_outside = false;    // leave out neighbours outside; else they equal those at the border
  bool antialias = false;          // when shrinking, average over all elements that a new one covers
  std::vector<double> roi = {};    // for tf_crop_and_resize: begin of each axis, then end of each, 0 to 1
  double extrapolation_value = 0;  // for tf_crop_and_resize: value outside of the input
};

/// `x` resampled along `axis`, each axis separately: linear and cubic weights multiply. Any number type. Integers are
/// interpolated in floating point, then rounded towards zero; nearest takes any dtype. InvalidArgument for sizes that
/// are not known or not positive, and for options that do not fit together.
Tensor resample(const Tensor& x, const ResampleOptions& options);

/// `x` cropped, or padded with zeros, to `sizes`, evenly at both ends of each axis. An odd element goes to the end. No
/// axis means all of them.
Tensor center_crop_pad(const Tensor& x, const std::vector<std::int64_t>& sizes, const NamedAxes& named);
template <class = void>
Tensor center_crop_pad(const Tensor& x, const std::vector<std::int64_t>& sizes, const std::vector<int>& axis = {}) {
  return center_crop_pad(x, sizes, NamedAxes{axis});
}

}  // namespace gradus
