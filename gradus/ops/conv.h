/// Convolutions, channels last: [batch, spatial..., channels] with one to three spatial dimensions. All operands have
/// one dtype: a float type, i32 or i64. 16-bit floats are computed in f32 and rounded once. Filters are laid out as in
/// TensorFlow. The batch size need not be known when tracing, nor spatial sizes with a stride of 1.
///
/// An element is one chain of fused multiply-adds in the order (kernel..., channel), including the zeros around the
/// input. Two-dimensional f32 convolutions of 3 x 3 with stride 1 and many channels take Winograd's F(2x2, 3x3) where
/// that is faster, and so do their gradients: 16 products for four windows instead of 36. Rounding errors are as large
/// as those of chains (0.6 to 1.2 of them, root mean square, of normal numbers). A number that is not finite, or whose
/// products come near the largest finite one, may also change windows one position beyond those that contain it. The
/// choice depends only on the sizes of an image and its channels, so an example's results are the same in any batch.
/// `.disable = {"winograd"}` computes chains.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/windows.h"

namespace gradus {

/// Options of convolution and its variants.
struct ConvolutionOptions {
  Sizes strides = {};                // one per spatial dimension, or one for all; none: 1
  Padding padding = Padding::valid;  // zeros around the input, by rule
  Paddings paddings = {};            // explicit zeros around the input, instead of `padding`
  Sizes dilations = {};              // distances between taps; none: 1
};

/// Convolution (cross-correlation) of a channels-last input: sum_k,c x[b, o*stride + k*dilation - before, c] filters[k,
/// c, f].
/// x: T[batch, spatial..., C], filters: T[kernel..., C/groups, F] -> T[batch, windows..., F].
/// The number of groups follows from the channels: group g takes its C/groups channels to its F/groups filters.
/// InvalidArgument where channels or windows do not fit.
Tensor convolution(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options = {});
Tensor conv(const Tensor&, const Tensor&, const ConvolutionOptions& = {}) = delete;  // conv1d, conv2d, conv3d
/// convolution of an input with one spatial dimension.
Tensor conv1d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options = {});
/// convolution of an input with two spatial dimensions.
Tensor conv2d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options = {});
/// convolution of an input with three spatial dimensions.
Tensor conv3d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options = {});

/// Depthwise convolution, each channel on its own: x: T[batch, spatial..., C], filter: T[kernel..., C, M] -> T[batch,
/// windows..., C*M]. Channel c gives channels c*M ... c*M + M - 1.
Tensor depthwise_conv1d(const Tensor& x, const Tensor& filter, const ConvolutionOptions& options = {});
/// Depthwise convolution with two spatial dimensions.
Tensor depthwise_conv2d(const Tensor& x, const Tensor& filter, const ConvolutionOptions& options = {});
/// Depthwise convolution, then a pointwise one across channels: depthwise_filter T[kernel..., C, M], pointwise_filter
/// T[1..., C*M, F].
Tensor separable_conv1d(const Tensor& x, const Tensor& depthwise_filter, const Tensor& pointwise_filter,
                        const ConvolutionOptions& options = {});
/// Separable convolution with two spatial dimensions.
Tensor separable_conv2d(const Tensor& x, const Tensor& depthwise_filter, const Tensor& pointwise_filter,
                        const ConvolutionOptions& options = {});

/// Options of conv_transpose and its variants.
struct ConvolutionTransposeOptions {
  Sizes strides = {};               // one per spatial dimension, or one for all; none: 1
  Padding padding = Padding::same;  // padding of the convolution whose transpose this is
  Paddings paddings = {};           // paddings of the convolution whose transpose this is: cut off the result
  Sizes dilations = {};             // distances between taps; none: 1
  Sizes output_padding = {};  // elements added at the end of each spatial dimension; fewer than its stride or dilation
  Sizes output_shape = {};    // spatial sizes of the result; none: the smallest that gives the input's
  std::int64_t groups = 1;    // number of equal parts of the channels
};

/// Transposed convolution: the gradient of a convolution by its input, as an op. x: T[batch, spatial..., C], filters:
/// T[kernel..., F/groups, C] -> T[batch, output..., F]. With output_shape empty and sizes known, output is input *
/// stride for Padding::same. For Padding::valid it is (input
/// - 1) * stride + reach - paddings + output_padding, where reach = (kernel - 1) * dilation + 1, and at least input *
/// stride, as in Keras. InvalidArgument for an output_shape that no convolution takes to the input's.
Tensor conv_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options = {});
/// conv_transpose of an input with one spatial dimension.
Tensor conv1d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options = {});
/// conv_transpose of an input with two spatial dimensions.
Tensor conv2d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options = {});
/// conv_transpose of an input with three spatial dimensions.
Tensor conv3d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options = {});

}  // namespace gradus
