/// Reading grids at computed positions: sampling, affine maps, regions of interest. Composites of gathers, so gradients
/// flow to the elements read and to the positions.
#pragma once
#include <limits>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"
#include "gradus/ops/resize.h"

namespace gradus {

/// Values beyond the border: zeros, the element at the border, or the mirror image.
enum class GridPadding { zeros, border, reflection };

/// Options of grid_sample.
struct GridSampleOptions {
  Interpolation mode = Interpolation::linear;  // interpolation between elements
  GridPadding padding = GridPadding::zeros;    // values beyond the border
  bool align_corners = false;  // true: -1 and 1 are the centers of the corner elements; false: their outer borders
};

/// Samples x at the positions of `grid`, as PyTorch's grid_sample and ONNX's GridSample.
/// x: [n, channels, d1 ... dk], grid: [n, o1 ... om, k] -> [n, channels, o1 ... om]; k is 1, 2 or 3.
/// Each position grid[..., :] has k numbers from -1 to 1, the first along dk and the last along d1. The grid has
/// floats. x has any number type; for linear and cubic, a float type. Computed in f32, or in f64 where one of the two
/// is f64. cubic has a = -0.75; nearest rounds halves to even. A NaN in the grid counts as beyond the border: with
/// zeros it gives 0, else NaN, or for nearest the first element.
Tensor grid_sample(const Tensor& x, const Tensor& grid, GridSampleOptions options = {});

/// Affine grid for grid_sample: theta: [n, 2, 3] or [n, 3, 4] -> [n, height, width, 2] or [n, depth, height, width, 3],
/// the positions theta (x, y, 1). `size` is {height, width} or {depth, height, width}.
Tensor affine_grid(const Tensor& theta, const std::vector<std::int64_t>& size, bool align_corners = false);

/// Options of roi_align.
struct RoiAlignOptions {
  std::int64_t output_height = 1, output_width = 1;  // bins per region
  std::int64_t sampling_ratio = 0;  // samples per bin and axis; 0: one per element, which needs known rois
  double spatial_scale = 1;         // factor on the coordinates of rois
  bool half_pixel = true;           // shifts rois by half an element
  bool takes_maximum = false;  // true: maximum of weighted corners, as ONNX's mode "max"; false: mean of the samples
  static constexpr auto ranges() {
    return std::array{Allowed::positive("output_height output_width spatial_scale"),
                      Allowed::not_negative("sampling_ratio")};
  }
};

/// Region-of-interest align: divides each region into bins, which are sampled bilinearly (He et al. 2017). x: [n,
/// channels, height, width], rois: [r, 4] (x1, y1, x2, y2), batch_indices: integers [r] -> [r, channels, output_height,
/// output_width]. Floats.
Tensor roi_align(const Tensor& x, const Tensor& rois, const Tensor& batch_indices, RoiAlignOptions options);

/// Region-of-interest max pooling: the largest element of each bin, 0 for a bin without elements (Girshick 2015, as
/// ONNX's MaxRoiPool).
/// x: [n, channels, height, width], rois: [r, 5] -> [r, channels, pooled_height, pooled_width].
/// A region is (index into n, x1, y1, x2, y2); its corners are in elements after spatial_scale, rounded, both included.
/// Floats of one dtype; ties share the gradient. An index outside of [0, n) is an OutOfRange when the value is
/// observed.
Tensor max_roi_pool(const Tensor& x, const Tensor& rois, std::int64_t pooled_height, std::int64_t pooled_width,
                    double spatial_scale = 1);

/// Options of non_max_suppression.
struct NonMaxSuppressionOptions {
  std::int64_t max_output_size = 0;  // most boxes that are kept per class
  double iou_threshold = 0.5;        // largest overlap (intersection over union) with a box that is kept
  double score_threshold = -std::numeric_limits<double>::infinity();  // boxes must score above it
  bool center_point_box =
      false;  // true: boxes are (x center, y center, width, height); false: two opposite corners (y, x, y, x)
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("max_output_size"), Allowed::share("iou_threshold"),
                      Allowed::any("score_threshold")};
  }
};

/// Non-maximum suppression: keeps the boxes of the highest scores above score_threshold, without those that overlap a
/// kept one by more than iou_threshold. boxes: [n, boxes, 4], scores: [n, classes, boxes] -> i64 [selected, 3]:
/// example, class and box. Computed on the host: an InvalidArgument within a trace, whose tensors have no values.
Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores, NonMaxSuppressionOptions options);

}  // namespace gradus
