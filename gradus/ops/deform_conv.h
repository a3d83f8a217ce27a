/// Deformable convolution (Dai et al. 2017, Zhu et al. 2019), channels last.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/windows.h"

namespace gradus {

/// Options of deform_conv2d.
struct DeformableOptions {
  Sizes strides = {};              // one per spatial dimension, or one for all; none: 1
  Paddings paddings = {};          // explicit zeros around the input
  Sizes dilations = {};            // distances between taps; none: 1
  std::int64_t offset_groups = 1;  // number of equal parts of the channels, each with its own offsets
};

/// Deformable convolution: every tap is moved by its offset (rows, columns) and reads between the elements, bilinearly.
/// Elements outside are zero.
/// x: T[batch, rows, columns, C], filters: T[kh, kw, C/groups, F],
/// offsets: T[batch, out_rows, out_columns, offset_groups * kh * kw * 2] -> T[batch, out_rows, out_columns, F];
/// mask: T[batch, out_rows, out_columns, offset_groups * kh * kw]: factors on the values of the taps; empty: ones. T is
/// a float type; 16-bit floats are computed in f32. Sizes must be known. All operands get gradients; those of the
/// offsets are the gradients of the bilinear weights.
Tensor deform_conv2d(const Tensor& x, const Tensor& filters, const Tensor& offsets, const Tensor& mask = {},
                     const DeformableOptions& options = {});

}  // namespace gradus
