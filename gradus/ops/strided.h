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

// For the rooms of the library.

/// One dimension of x[begin:end:step]. An empty begin or end is where the step begins or ends.
struct Range {
  std::optional<std::int64_t> begin = {}, end = {};  // elements [begin, end)
  std::int64_t step = 1;                             // distance between elements, may be negative
};
/// One range per dimension of x. `op` opens errors.
Tensor slice_ranges(const Tensor& x, const std::vector<Range>& ranges, std::string_view op);
/// Elements begin, begin + step, begin + 2*step ... along `axis`, `size` of them, which must lie within x.
Tensor every(const Tensor& x, int axis, std::int64_t begin, std::int64_t size, std::int64_t step);

/// A strided view: element i of dimension d is element begin[d] + i * step[d] of the input. In dimensions whose bit is
/// set in `backwards` (bit 0: the last) it is element begin[d] + (size[d] - 1 - i) * step[d]. The numbers are
/// dimensions, symbolic or not; steps are positive.
struct StridedSlice {
  static constexpr auto name = "strided_slice";
  static constexpr auto takes = Takes::anything;
  Shape begin = {};   // first element of each dimension
  Shape size = {};    // number of elements of each dimension
  Shape step = {};    // distance between elements of each dimension
  int backwards = 0;  // bit set of the dimensions that are walked backwards
  Spec infer(Specs in) const;
  View view(const Shape& in, const Shape& out) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

}  // namespace gradus
