/// Convolutional layers, channels last, with Keras's defaults: images are [batch, rows, columns, channels], sequences
/// [batch, steps, channels], volumes [batch, depth, rows, columns, channels]. Kernels are laid out as in Keras.
///
/// InvalidArgument unless filters, kernel, strides, dilation, groups and depth_multiplier are positive and the groups
/// divide the filters, and for an option that the layer does not have; in a call unless x is floating, of these
/// dimensions, with known channels that the groups divide, as many as it was built for.
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

/// A number for rows and one for columns: 3, or {3, 5}.
struct Pair {
  std::int64_t rows, columns;
  Pair(std::int64_t both) : rows(both), columns(both) {}
  Pair(std::int64_t first, std::int64_t second) : rows(first), columns(second) {}
  operator Sizes() const { return {rows, columns}; }
};
/// The same for volumes.
struct Triple {
  std::int64_t depth, rows, columns;
  Triple(std::int64_t all) : depth(all), rows(all), columns(all) {}
  Triple(std::int64_t first, std::int64_t second, std::int64_t third) : depth(first), rows(second), columns(third) {}
  operator Sizes() const { return {depth, rows, columns}; }
};
/// And for sequences.
struct Single {
  std::int64_t steps;
  Single(std::int64_t n) : steps(n) {}
  operator Sizes() const { return {steps}; }
};

template <class Size> struct ConvOptionsOf {
  Size strides = 1;
  Padding padding = Padding::valid;
  Size dilation = 1;
  std::int64_t groups = 1;
  Activation activation = linear;
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform, bias_initializer = initializers::zeros;
  std::string name = {};
  std::int64_t depth_multiplier = 1;  // of depthwise and separable layers, which have no groups
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Regularizer pointwise_regularizer = {};  // separable layers: kernel_regularizer is of the depthwise kernel
  static constexpr auto ranges() { return std::array{Allowed::positive("groups depth_multiplier")}; }
};
using Conv1DOptions = ConvOptionsOf<Single>;
using ConvOptions = ConvOptionsOf<Pair>;
using Conv3DOptions = ConvOptionsOf<Triple>;

/// activation(convolution(x, kernel) + bias); kernel [sizes..., channels / groups, filters].
struct Conv1D : Module {
  Conv1D(std::int64_t filters, Single kernel, Conv1DOptions options = {});
};
struct Conv2D : Module {
  Conv2D(std::int64_t filters, Pair kernel, ConvOptions options = {});
};
struct Conv3D : Module {
  Conv3D(std::int64_t filters, Triple kernel, Conv3DOptions options = {});
};

/// activation(conv_transpose(x, kernel) + bias); kernel [sizes..., filters / groups, channels]. An input of n gives
/// n * stride with Padding::same, n * stride + max(reach - stride, 0) with Padding::valid, where the kernel reaches
/// over (size - 1) * dilation + 1.
struct Conv1DTranspose : Module {
  Conv1DTranspose(std::int64_t filters, Single kernel, Conv1DOptions options = {});
};
struct Conv2DTranspose : Module {
  Conv2DTranspose(std::int64_t filters, Pair kernel, ConvOptions options = {});
};
struct Conv3DTranspose : Module {
  Conv3DTranspose(std::int64_t filters, Triple kernel, Conv3DOptions options = {});
};

/// Each channel on its own; kernel [sizes..., channels, depth_multiplier].
struct DepthwiseConv1D : Module {
  explicit DepthwiseConv1D(Single kernel, Conv1DOptions options = {});
};
struct DepthwiseConv2D : Module {
  explicit DepthwiseConv2D(Pair kernel, ConvOptions options = {});
};

/// Each channel in space, then all of them at each place: depthwise_kernel [sizes..., channels, depth_multiplier],
/// pointwise_kernel [1..., channels * depth_multiplier, filters].
struct SeparableConv1D : Module {
  SeparableConv1D(std::int64_t filters, Single kernel, Conv1DOptions options = {});
};
struct SeparableConv2D : Module {
  SeparableConv2D(std::int64_t filters, Pair kernel, ConvOptions options = {});
};

}  // namespace gradus
