/// Reading grids at positions that are computed: sampling, affine maps, regions of interest. Composites of gathers, so
/// gradients flow to what is read and to the positions.
#pragma once
#include <limits>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"
#include "gradus/ops/resize.h"

namespace gradus {

/// What lies beyond the border: zeros, the element at the border, or the mirror image.
enum class GridPadding { zeros, border, reflection };

struct GridSampleOptions {
  Interpolation mode = Interpolation::linear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;  // -1 and 1 are the centers of the corner elements, else their outer borders
};

/// x: [n, channels, d1 ... dk], grid: [n, o1 ... om, k] -> [n, channels, o1 ... om]: for each place the element at the
/// position grid[..., :], whose first number counts along dk and last along d1, from -1 to 1. As PyTorch's grid_sample
/// and ONNX's GridSample; cubic has a = -0.75. A grid of floats; x of any number type, of floats for linear and cubic,
/// computed in f32, or in f64 where one of the two is f64. k is 1, 2 or 3. nearest rounds halves to even.
/// A NaN in the grid is beyond the border: with zeros 0, else NaN, or the first element for nearest.
Tensor grid_sample(const Tensor& x, const Tensor& grid, GridSampleOptions options = {});

/// theta: [n, 2, 3] or [n, 3, 4] -> the grid [n, height, width, 2] or [n, depth, height, width, 3] of positions theta
/// (x, y, 1) for grid_sample; `size` is {height, width} or {depth, height, width}.
Tensor affine_grid(const Tensor& theta, const std::vector<std::int64_t>& size, bool align_corners = false);

struct RoiAlignOptions {
  std::int64_t output_height = 1, output_width = 1;
  std::int64_t sampling_ratio =
      0;                       // samples a bin along each axis; 0: as many as elements, for which rois must be known
  double spatial_scale = 1;    // of the coordinates of rois
  bool half_pixel = true;      // shifts rois by half an element
  bool takes_maximum = false;  // of weighted corners, as ONNX's mode "max"; else the mean of the samples
  static constexpr auto ranges() {
    return std::array{Allowed::positive("output_height output_width spatial_scale"),
                      Allowed::not_negative("sampling_ratio")};
  }
};

/// x: [n, channels, height, width], rois: [r, 4] (x1, y1, x2, y2), batch_indices: integers [r] -> [r, channels,
/// output_height, output_width]: each region divided into bins, which are sampled bilinearly (He et al. 2017). Floats.
Tensor roi_align(const Tensor& x, const Tensor& rois, const Tensor& batch_indices, RoiAlignOptions options);

/// x: [n, channels, height, width], rois: [r, 5] (which of the n, x1, y1, x2, y2), corners in elements after
/// spatial_scale, rounded, both included -> [r, channels, pooled_height, pooled_width]: the largest element of each
/// bin, 0 of one without elements (Girshick 2015, as ONNX's MaxRoiPool). Floats of one dtype; ties share the gradient.
/// An index that is none of the n is an OutOfRange when the value is observed.
Tensor max_roi_pool(const Tensor& x, const Tensor& rois, std::int64_t pooled_height, std::int64_t pooled_width,
                    double spatial_scale = 1);

struct NonMaxSuppressionOptions {
  std::int64_t max_output_size = 0;  // boxes a class at most
  double iou_threshold = 0.5;
  double score_threshold = -std::numeric_limits<double>::infinity();
  bool center_point_box =
      false;  // boxes are (x center, y center, width, height), else two opposite corners (y, x, y, x)
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("max_output_size"), Allowed::share("iou_threshold"),
                      Allowed::any("score_threshold")};
  }
};

/// boxes: [n, boxes, 4], scores: [n, classes, boxes] -> i64 [selected, 3]: example, class and box of those that are
/// kept: the highest scores above the threshold, without those that overlap with one that is kept by more than
/// iou_threshold. On the host: within a trace, whose tensors have no values, an InvalidArgument.
Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores, NonMaxSuppressionOptions options);

}  // namespace gradus
