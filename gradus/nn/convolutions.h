/// Convolutional layers, channels last, with Keras's defaults. Images are [batch, rows, columns, channels], sequences
/// [batch, steps, channels], volumes [batch, depth, rows, columns, channels]. Kernels are laid out as in Keras.
///
/// InvalidArgument unless filters, kernel, strides, dilation, groups and depth_multiplier are positive and the groups
/// divide the filters, and for an option that the layer does not have. In a call, InvalidArgument unless x is floating,
/// of these dimensions, and with the known number of channels that it was built for, which the groups divide.
#pragma once
#include <optional>
#include <string>
#include "gradus/base/ranges.h"
#include "gradus/nn/activation.h"
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/windows.h"

namespace gradus {

/// Sizes for images, one for rows and one for columns: 3, or {3, 5}.
struct Pair {
  std::int64_t rows, columns;  // one each
  Pair(std::int64_t both) : rows(both), columns(both) {}
  Pair(std::int64_t first, std::int64_t second) : rows(first), columns(second) {}
  /// As a list.
  operator Sizes() const { return {rows, columns}; }
};
/// Sizes for volumes.
struct Triple {
  std::int64_t depth, rows, columns;  // one each
  Triple(std::int64_t all) : depth(all), rows(all), columns(all) {}
  Triple(std::int64_t first, std::int64_t second, std::int64_t third) : depth(first), rows(second), columns(third) {}
  /// As a list.
  operator Sizes() const { return {depth, rows, columns}; }
};
/// A size for sequences.
struct Single {
  std::int64_t steps;  // the number
  Single(std::int64_t n) : steps(n) {}
  /// As a list.
  operator Sizes() const { return {steps}; }
};

/// Options of convolutional layers.
template <class Size> struct ConvOptionsOf {
  Size strides = 1;                  // distances between windows
  Padding padding = Padding::valid;  // padding around the input
  Size dilation = 1;                 // distances between taps
  std::int64_t groups = 1;           // equal parts of the channels that are convolved separately
  Activation activation = linear;    // applied to the result
  bool use_bias = true;              // the layer has a bias
  /// First values of kernel and bias.
  Initializer kernel_initializer = initializers::glorot_uniform, bias_initializer = initializers::zeros;
  std::string name = {};              // empty: by its class
  std::int64_t depth_multiplier = 1;  // depthwise and separable layers, which have no groups
  /// Penalties on the variables and the result.
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Regularizer pointwise_regularizer = {};  // separable layers, whose kernel_regularizer is for the depthwise kernel
  static constexpr auto ranges() { return std::array{Allowed::positive("groups depth_multiplier")}; }
};
/// Options with one spatial dimension.
using Conv1DOptions = ConvOptionsOf<Single>;
/// Options with two spatial dimensions.
using ConvOptions = ConvOptionsOf<Pair>;
/// Options with three spatial dimensions.
using Conv3DOptions = ConvOptionsOf<Triple>;

/// activation(convolution(x, kernel) + bias), with kernel [sizes..., channels / groups, filters].
struct Conv1D : Module {
  Conv1D(std::int64_t filters, Single kernel, Conv1DOptions options = {});
};
/// Conv1D with two spatial dimensions.
struct Conv2D : Module {
  Conv2D(std::int64_t filters, Pair kernel, ConvOptions options = {});
};
/// Conv1D with three spatial dimensions.
struct Conv3D : Module {
  Conv3D(std::int64_t filters, Triple kernel, Conv3DOptions options = {});
};

/// Transposed convolution: activation(conv_transpose(x, kernel) + bias), with kernel [sizes..., filters / groups,
/// channels]. An input of n gives n * stride with Padding::same, and n * stride + max(reach - stride, 0) with
/// Padding::valid, where reach = (size - 1) * dilation + 1.
struct Conv1DTranspose : Module {
  Conv1DTranspose(std::int64_t filters, Single kernel, Conv1DOptions options = {});
};
/// Conv1DTranspose with two spatial dimensions.
struct Conv2DTranspose : Module {
  Conv2DTranspose(std::int64_t filters, Pair kernel, ConvOptions options = {});
};
/// Conv1DTranspose with three spatial dimensions.
struct Conv3DTranspose : Module {
  Conv3DTranspose(std::int64_t filters, Triple kernel, Conv3DOptions options = {});
};

/// Depthwise convolution, each channel on its own, with kernel [sizes..., channels, depth_multiplier].
struct DepthwiseConv1D : Module {
  explicit DepthwiseConv1D(Single kernel, Conv1DOptions options = {});
};
/// DepthwiseConv1D with two spatial dimensions.
struct DepthwiseConv2D : Module {
  explicit DepthwiseConv2D(Pair kernel, ConvOptions options = {});
};

/// Depthwise convolution, then a pointwise one across channels: depthwise_kernel [sizes..., channels,
/// depth_multiplier], pointwise_kernel [1..., channels * depth_multiplier, filters].
struct SeparableConv1D : Module {
  SeparableConv1D(std::int64_t filters, Single kernel, Conv1DOptions options = {});
};
/// SeparableConv1D with two spatial dimensions.
struct SeparableConv2D : Module {
  SeparableConv2D(std::int64_t filters, Pair kernel, ConvOptions options = {});
};

}  // namespace gradus
