/// Images: colours, brightness and contrast, cutting to size, edges, and how alike two of them are. Images are
/// [..., height, width, channels], channels last, as in tf.image. Floats hold intensities from 0 to 1, integers from 0
/// to their largest number; what is computed of integers is computed in f32 on that scale and brought back, cut to the
/// range. Composites of other ops, so gradients of every order flow.
#pragma once
#include <array>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"
#include "gradus/ops/resize.h"

namespace gradus {

/// Between types and their scales: integers to floats divide by the largest number, floats to integers multiply by it
/// plus 1/2 and are cut off, integers to integers move by powers of 2. `saturate`: what is beyond the range becomes its
/// end, which else wraps. Any number type.
Tensor convert_image_dtype(const Tensor& image, DType dtype, bool saturate = false);

/// 0.2989 r + 0.587 g + 0.114 b: [..., 3] -> [..., 1].
Tensor rgb_to_grayscale(const Tensor& images);
/// [..., 1] -> [..., 3], all alike.
Tensor grayscale_to_rgb(const Tensor& images);
/// Hue, saturation and value, each from 0 to 1. Floats [..., 3], as are the next five.
Tensor rgb_to_hsv(const Tensor& images);
Tensor hsv_to_rgb(const Tensor& images);
Tensor rgb_to_yiq(const Tensor& images);
Tensor yiq_to_rgb(const Tensor& images);
Tensor rgb_to_yuv(const Tensor& images);
Tensor yuv_to_rgb(const Tensor& images);

/// x + delta
Tensor adjust_brightness(const Tensor& image, double delta);
/// (x - mean) * contrast_factor + mean, the mean of each channel of an image.
Tensor adjust_contrast(const Tensor& images, double contrast_factor);
/// gain * x^gamma. InvalidArgument of a negative gamma.
Tensor adjust_gamma(const Tensor& image, double gamma = 1, double gain = 1);
/// Turns the hue by delta, where 1 is all the way round. RGB. InvalidArgument outside [-1, 1].
Tensor adjust_hue(const Tensor& image, double delta);
/// Multiplies the saturation, cut to [0, 1]. RGB.
Tensor adjust_saturation(const Tensor& image, double saturation_factor);
/// Each image with mean 0 and deviation 1; the deviation counts as at least 1 / sqrt(elements). Integers give f32.
Tensor per_image_standardization(const Tensor& images);

/// The middle `central_fraction` of height and width, in (0, 1]. Sizes must be known, as in all that cut.
Tensor central_crop(const Tensor& image, double central_fraction);
/// The box of this size from a row and a column on. OutOfRange past the image.
Tensor crop_to_bounding_box(const Tensor& image, std::int64_t offset_height, std::int64_t offset_width,
                            std::int64_t target_height, std::int64_t target_width);
/// Zeros around, so that the image stands at a row and a column. InvalidArgument where it does not fit.
Tensor pad_to_bounding_box(const Tensor& image, std::int64_t offset_height, std::int64_t offset_width,
                           std::int64_t target_height, std::int64_t target_width);
/// Cut, or filled with zeros, evenly on both sides.
Tensor resize_with_crop_or_pad(const Tensor& image, std::int64_t target_height, std::int64_t target_width);

/// resize to fit into the size with its aspect ratio kept, and zeros around it, evenly.
Tensor resize_with_pad(const Tensor& image, std::int64_t target_height, std::int64_t target_width,
                       ResizeOptions options = {});

struct ImageGradients {
  Tensor dy, dx;  // of the shape of the image; 0 in the last row, the last column
};
/// Differences of neighbouring pixels. image: [batch, height, width, channels].
ImageGradients image_gradients(const Tensor& image);
/// Sobel filters over images that are mirrored at the border: [..., height, width, channels] -> [..., height, width,
/// channels, 2], the last (dy, dx). Floats.
Tensor sobel_edges(const Tensor& image);
/// The sum of |differences of neighbours| of each image: [..., height, width, channels] -> [...].
Tensor total_variation(const Tensor& images);

/// 10 log10(max_val^2 / mean((a - b)^2)) of each pair of images: f32, or f64 of f64. Equal ones: infinite.
Tensor psnr(const Tensor& a, const Tensor& b, double max_val);

struct SsimOptions {
  std::int64_t filter_size = 11;
  double filter_sigma = 1.5;
  double k1 = 0.01, k2 = 0.03;
  static constexpr auto ranges() {
    return std::array{Allowed::positive("filter_size filter_sigma"), Allowed::not_negative("k1 k2")};
  }
};
/// Structural similarity of each pair of images (Wang et al. 2004), the mean over places and channels. InvalidArgument
/// of images that are smaller than the filter.
Tensor ssim(const Tensor& a, const Tensor& b, double max_val, SsimOptions options = {});

enum class CropMethod { bilinear, nearest };
struct CropAndResizeOptions {
  CropMethod method = CropMethod::bilinear;
  double extrapolation_value = 0;  // where a box reaches beyond the image
};
/// Boxes of images, each brought to one size. image: [batch, height, width, channels], boxes: floats [n, 4] (y1, x1,
/// y2, x2), 0 the first and 1 the last row or column (y1 > y2 turns upside down), box_indices: integers [n], the image
/// of each box -> [n, crop_size..., channels], f32, or f64 of f64. Gradients flow to the image and, of bilinear, to the
/// boxes. An index that is no image is an OutOfRange when the value is observed.
Tensor crop_and_resize(const Tensor& image, const Tensor& boxes, const Tensor& box_indices,
                       std::array<std::int64_t, 2> crop_size, CropAndResizeOptions options = {});

}  // namespace gradus
