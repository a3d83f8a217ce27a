/// Convolutions, channels last: [batch, spatial..., channels] with one to three spatial dimensions. The dtype is a
/// float type, i32 or i64, one for all operands; 16-bit floats are computed in f32 and rounded once. Filters are laid
/// out as in TensorFlow. The batch, and with a stride of 1 spatial sizes, need not be known when tracing.
///
/// An element is one chain of fused multiply-adds in the order of (kernel..., channel), zeros around the input
/// included. In f32 two-dimensional ones of 3 x 3, stride 1, and many channels are computed by Winograd's F(2x2, 3x3)
/// where that takes less time, and so are their gradients: 16 products for four windows instead of 36. Rounding errors
/// are as large as those of chains (0.6 to 1.2 of them, root mean square, of normal numbers); a number that is not
/// finite, or whose products come near the largest one, may spoil windows up to one place further than those that see
/// it. Sizes of an image and its channels alone decide, so that an example's results are the same in any batch.
/// `.disable = {"winograd"}` computes chains.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/windows.h"

namespace gradus {

struct ConvolutionOptions {
  Sizes strides = {};  // one a spatial dimension, or one for all; none: 1
  Padding padding = Padding::valid;
  Paddings paddings = {};  // explicit zeros, instead of `padding`
  Sizes dilations = {};
};

/// x: T[batch, spatial..., C], filters: T[kernel..., C/groups, F] -> T[batch, windows..., F], the cross-correlation
/// sum_k,c x[b, o*stride + k*dilation - before, c] filters[k, c, f]. The number of groups follows from the channels:
/// group g takes its C/groups channels to its F/groups filters. InvalidArgument where channels or windows do not fit.
Tensor convolution(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options = {});
/// The same, of an input with one, two, three spatial dimensions.
Tensor conv1d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options = {});
Tensor conv2d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options = {});
Tensor conv3d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options = {});

/// Each channel on its own: x: T[batch, spatial..., C], filter: T[kernel..., C, M] -> T[batch, windows..., C*M];
/// channel c gives channels c*M ... c*M + M - 1.
Tensor depthwise_conv1d(const Tensor& x, const Tensor& filter, const ConvolutionOptions& options = {});
Tensor depthwise_conv2d(const Tensor& x, const Tensor& filter, const ConvolutionOptions& options = {});
/// In space first, then across channels: depthwise_filter T[kernel..., C, M], pointwise_filter T[1..., C*M, F].
Tensor separable_conv1d(const Tensor& x, const Tensor& depthwise_filter, const Tensor& pointwise_filter,
                        const ConvolutionOptions& options = {});
Tensor separable_conv2d(const Tensor& x, const Tensor& depthwise_filter, const Tensor& pointwise_filter,
                        const ConvolutionOptions& options = {});

struct ConvolutionTransposeOptions {
  Sizes strides = {};
  Padding padding = Padding::same;
  Paddings paddings = {};  // of the convolution that this is the transpose of: cut off the result
  Sizes dilations = {};
  Sizes output_padding = {};  // elements more at the end of each spatial dimension, fewer than its stride
  Sizes output_shape = {};    // spatial sizes of the result; none: the smallest that gives the input's
  std::int64_t groups = 1;
};

/// The gradient of a convolution by its input, as a map of its own: x: T[batch, spatial..., C],
/// filters: T[kernel..., F/groups, C] -> T[batch, output..., F]. Without output_shape and with known sizes, output is
/// input * stride for Padding::same, and (input - 1) * stride + reach - paddings + output_padding else, where the
/// kernel reaches over (kernel - 1) * dilation + 1; at least input * stride for Padding::valid, as in Keras.
/// InvalidArgument for an output_shape that no convolution takes to the input's.
Tensor conv_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options = {});
Tensor conv1d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options = {});
Tensor conv2d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options = {});
Tensor conv3d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options = {});

}  // namespace gradus
