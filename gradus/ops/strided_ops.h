/// The strided view behind strided_slice, and slices that the rooms of the library take by ranges.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// One dimension of x[begin:end:step]. An empty begin or end is where the step begins or ends.
struct Range {
  std::optional<std::int64_t> begin = {}, end = {};           // elements [begin, end)
  std::int64_t step = 1;                                      // distance between elements, may be negative
  bool begin_is_dimension = false, end_is_dimension = false;  // a negative one is symbolic: it counts from the front
};
/// One range per dimension of x. `op` opens errors.
Tensor slice_ranges(const Tensor& x, const std::vector<Range>& ranges, std::string_view op);
/// Elements begin, begin + step, begin + 2*step ... along `axis`, `size` of them, which must lie within x.
Tensor every(const Tensor& x, int axis, std::int64_t begin, std::int64_t size, std::int64_t step);

struct StridedSlice;
/// The view that slice_ranges takes. `op` opens errors.
StridedSlice box_of_ranges(const Tensor& x, const std::vector<Range>& ranges, std::string_view op);
/// `box` of x, by the simplest view that has it: x itself, a Slice or a Reverse.
Tensor slice_box(const Tensor& x, const StridedSlice& box);

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
