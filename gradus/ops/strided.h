/// Slices with steps: x[begin:end:step], forwards and backwards, read in place.
#pragma once
#include <optional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of strided_slice. In the masks, bit i gives the i-th number of `begin` and `end` another meaning, as in
/// TensorFlow.
struct StridedSliceOptions {
  std::vector<std::int64_t> strides = {};  // none: all 1
  std::uint32_t begin_mask = 0;            // begin at the first element that the step reaches
  std::uint32_t end_mask = 0;              // end at the last element
  std::uint32_t ellipsis_mask = 0;         // stands for as many whole dimensions as are missing; at most one bit
  std::uint32_t new_axis_mask = 0;         // insert a new dimension of 1
  std::uint32_t shrink_axis_mask = 0;  // take the one element `begin`, without its dimension; OutOfRange past the ends
};
/// x[begin[0]:end[0]:strides[0], begin[1]:end[1]:strides[1], ...]. Negative begins and ends count from the end. Both
/// are clamped to the dimension as in NumPy; if it is unknown when tracing, every call is checked instead. A step may
/// be negative, not 0. Dimensions that are not named stay whole.
Tensor strided_slice(const Tensor& x, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& end,
                     const StridedSliceOptions& options = {});

}  // namespace gradus
