/// Deformable convolution (Dai et al. 2017, Zhu et al. 2019), channels last.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/windows.h"

namespace gradus {

struct DeformableOptions {
  Sizes strides = {};
  Paddings paddings = {};
  Sizes dilations = {};
  std::int64_t offset_groups = 1;  // equal parts of the channels with offsets of their own
};

/// x: T[batch, rows, columns, C], filters: T[kh, kw, C/groups, F],
/// offsets: T[batch, out_rows, out_columns, offset_groups * kh * kw * 2] -> T[batch, out_rows, out_columns, F]: a
/// convolution each of whose taps is moved by its offset (rows, columns) and reads between the elements, bilinearly;
/// elements outside are zero. mask: T[batch, out_rows, out_columns, offset_groups * kh * kw] is multiplied to what the
/// taps read; an empty Tensor: ones. T is a float type, of which those of 16 bits are computed in f32; sizes must be
/// known. Gradients are by all operands, by an offset those of the bilinear weights.
Tensor deform_conv2d(const Tensor& x, const Tensor& filters, const Tensor& offsets, const Tensor& mask = {},
                     const DeformableOptions& options = {});

}  // namespace gradus
