/// Removing whole channels: units of Dense layers, filters of convolutions. First they are masked, which a training may
/// follow; then they are taken out, and what is left is smaller and faster.
#pragma once
#include "gradus/nn/layers.h"

namespace gradus {

/// Masks the share `share` (rounded down, at least one channel stays) of the channels of each Dense and convolution
/// whose kernels have the least sum of magnitudes (Li et al. 2017), with their biases and the shift of batch
/// normalization behind them, so that they are 0 and stay so. Left alone is a layer whose output is the model's; one
/// after whose activation 0 is not 0 (sigmoid); and one between which and the next Dense or convolution a layer stands
/// that mixes channels otherwise (LayerNormalization, Softmax, Reshape, Lambda, a Model): activations, pooling,
/// padding, noise, Flatten, BatchNormalization and depthwise convolutions do not. A Sequential within is what it holds.
/// The number of channels that are masked. InvalidArgument for a model that is not built, and unless 0 <= share < 1.
std::int64_t prune_channels(const Sequential& model, double share);

/// A copy without the channels that are 0 for every input: those of prune_channels, and any whose kernels are 0 and
/// whose bias gives 0. They go out of the kernel that makes them, of what stands behind it, and of the kernel that
/// reads them, so in inference the copy computes the same up to rounding. Names stay; the optimizer of the original
/// does not fit. In training, dropout draws other numbers. InvalidArgument for a model that is not built.
Sequential remove_pruned_channels(const Sequential& model);

}  // namespace gradus
