/// Bilinear samples of images as a primitive, and its definition by other ops.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/region.h"

namespace gradus {

/// x: T[n, height, width, channels], rows, columns: T[n, places] -> T[n, places, channels]; T is f32 or f64.
/// Reads each image between its pixels: place p lies at rows[p] and columns[p], counted in pixels. The four neighbours
/// are weighted by (1 - part) and part along either axis, and added row by row. A neighbour beyond the image counts as
/// 0 with `zeros`, else as the pixel at the border. Height and width are at least 1. This is a primitive since its
/// definition, linear_sample_definition(), moves each pixel through memory ten times.
struct LinearSample {
  static constexpr auto name = "linear_sample";
  static constexpr auto library_kernel = "linear_sample";
  static constexpr auto takes = Takes::floats;
  bool zeros = false;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// A region that computes `op` by other ops, with the same bits, for operands of these specs. Empty unless `op` is a
/// LinearSample.
Region linear_sample_definition(const AnyOp& op, Specs in);

}  // namespace gradus
