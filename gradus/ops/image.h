/// Images: colours, brightness and contrast, cropping and padding, edges, similarity. Images are [..., height, width,
/// channels], channels last, as in tf.image. Floats hold intensities from 0 to 1, integers from 0 to their largest
/// number. Results for integers are computed in f32 on that scale, converted back, and clipped to the range. Composites
/// of other ops, so gradients of every order flow.
#pragma once
#include <array>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"
#include "gradus/ops/resize.h"

namespace gradus {

/// Converts between dtypes and their scales. Integers to floats: divided by the largest number. Floats to integers:
/// multiplied by it plus 1/2, then truncated. Integers to integers: multiplied or divided by powers of 2. Values beyond
/// the range wrap, or with `saturate` become its end. Any number type.
Tensor convert_image_dtype(const Tensor& image, DType dtype, bool saturate = false);

/// 0.2989 r + 0.587 g + 0.114 b: [..., 3] -> [..., 1].
Tensor rgb_to_grayscale(const Tensor& images);
/// Three equal channels: [..., 1] -> [..., 3].
Tensor grayscale_to_rgb(const Tensor& images);
/// RGB to hue, saturation and value, each from 0 to 1. Floats [..., 3].
Tensor rgb_to_hsv(const Tensor& images);
/// Hue, saturation and value to RGB. Floats [..., 3].
Tensor hsv_to_rgb(const Tensor& images);
/// RGB to YIQ. Floats [..., 3].
Tensor rgb_to_yiq(const Tensor& images);
/// YIQ to RGB. Floats [..., 3].
Tensor yiq_to_rgb(const Tensor& images);
/// RGB to YUV. Floats [..., 3].
Tensor rgb_to_yuv(const Tensor& images);
/// YUV to RGB. Floats [..., 3].
Tensor yuv_to_rgb(const Tensor& images);

/// x + delta.
Tensor adjust_brightness(const Tensor& image, double delta);
/// (x - mean) * contrast_factor + mean, with the mean of each channel of an image.
Tensor adjust_contrast(const Tensor& images, double contrast_factor);
/// gain * x^gamma. InvalidArgument for a negative gamma.
Tensor adjust_gamma(const Tensor& image, double gamma = 1, double gain = 1);
/// Rotates the hue by delta, where 1 is a full turn. RGB. InvalidArgument outside [-1, 1].
Tensor adjust_hue(const Tensor& image, double delta);
/// Multiplies the saturation, clipped to [0, 1]. RGB.
Tensor adjust_saturation(const Tensor& image, double saturation_factor);
/// Each image scaled to mean 0 and standard deviation 1. The deviation counts as at least 1 / sqrt(elements). Integers
/// give f32.
Tensor per_image_standardization(const Tensor& images);

/// The middle `central_fraction` of height and width, in (0, 1]. Sizes must be known, as for all crops.
Tensor central_crop(const Tensor& image, double central_fraction);
/// The box of this size that begins at this row and column. OutOfRange if it reaches past the image.
Tensor crop_to_bounding_box(const Tensor& image, std::int64_t offset_height, std::int64_t offset_width,
                            std::int64_t target_height, std::int64_t target_width);
/// A larger image of zeros, with `image` at this row and column. InvalidArgument where it does not fit.
Tensor pad_to_bounding_box(const Tensor& image, std::int64_t offset_height, std::int64_t offset_width,
                           std::int64_t target_height, std::int64_t target_width);
/// Crops, or pads with zeros, evenly on both sides.
Tensor resize_with_crop_or_pad(const Tensor& image, std::int64_t target_height, std::int64_t target_width);

/// Resizes to fit into the size with the aspect ratio kept, then pads with zeros, evenly.
Tensor resize_with_pad(const Tensor& image, std::int64_t target_height, std::int64_t target_width,
                       ResizeOptions options = {});

/// Result of image_gradients.
struct ImageGradients {
  Tensor dy, dx;  // in the shape of the image; 0 in the last row (dy), the last column (dx)
};
/// Differences of neighbouring pixels. image: [batch, height, width, channels].
ImageGradients image_gradients(const Tensor& image);
/// Sobel filters over images that are mirrored at the border: [..., height, width, channels] -> [..., height, width,
/// channels, 2], the last (dy, dx). Floats.
Tensor sobel_edges(const Tensor& image);
/// Total variation: the sum of |differences of neighbours| of each image, [..., height, width, channels] -> [...].
Tensor total_variation(const Tensor& images);

/// Peak signal-to-noise ratio of each pair of images, 10 log10(max_val^2 / mean((a - b)^2)), in decibels: f32, or f64
/// for f64. Infinite for equal images.
Tensor psnr(const Tensor& a, const Tensor& b, double max_val);

/// Options of ssim.
struct SsimOptions {
  std::int64_t filter_size = 11;  // side of the Gaussian window, in pixels
  double filter_sigma = 1.5;      // standard deviation of the window
  double k1 = 0.01, k2 = 0.03;    // constants that stabilise the quotients, as shares of max_val
  static constexpr auto ranges() {
    return std::array{Allowed::positive("filter_size filter_sigma"), Allowed::not_negative("k1 k2")};
  }
};
/// Structural similarity of each pair of images (Wang et al. 2004), the mean over positions and channels.
/// InvalidArgument for images smaller than the filter.
Tensor ssim(const Tensor& a, const Tensor& b, double max_val, SsimOptions options = {});

/// Interpolation of crop_and_resize.
enum class CropMethod { bilinear, nearest };
/// Options of crop_and_resize.
struct CropAndResizeOptions {
  CropMethod method = CropMethod::bilinear;  // interpolation between pixels
  double extrapolation_value = 0;            // value where a box reaches beyond the image
};
/// Crops boxes out of images and resizes each to one size.
/// image: [batch, height, width, channels], boxes: floats [n, 4] (y1, x1, y2, x2), box_indices: integers [n], the image
/// of each box -> [n, crop_size..., channels], f32, or f64 for f64.
/// Coordinate 0 is the first row or column, 1 the last one; y1 > y2 turns a box upside down. Gradients flow to the
/// image and, with bilinear, to the boxes. An index that is no image is an OutOfRange when the value is observed.
Tensor crop_and_resize(const Tensor& image, const Tensor& boxes, const Tensor& box_indices,
                       std::array<std::int64_t, 2> crop_size, CropAndResizeOptions options = {});

}  // namespace gradus
