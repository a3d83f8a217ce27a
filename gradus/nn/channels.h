/// Structured pruning: removing whole channels, which are units of Dense layers and filters of convolutions. They are
/// masked first, and may then be trained further. Then they are removed, and the remaining model is smaller and faster.
#pragma once
#include "gradus/nn/layers.h"

namespace gradus {

/// Masks a share of the channels (rounded down, at least one stays) of each Dense and convolution: those whose kernels
/// have the least sum of magnitudes (Li et al. 2017). Their biases are masked, too, and the shift of a batch
/// normalization behind them, so that they are and stay 0. Returns the number of masked channels.
///
/// Some layers are skipped: a layer whose output is the model's; a layer whose activation does not map 0 to 0
/// (sigmoid); and a layer that is separated from the next Dense or convolution by one that mixes channels otherwise
/// (LayerNormalization, Softmax, Reshape, Lambda, a Model). Activations, pooling, padding, noise, Flatten,
/// BatchNormalization and depthwise convolutions do not mix them. A nested Sequential counts as its layers.
/// InvalidArgument for a model that is not built, and unless 0 <= share < 1.
std::int64_t prune_channels(const Sequential& model, double share);

/// A copy without the channels that are 0 for every input: those of prune_channels, and any with a kernel of 0 and a
/// bias that gives 0. They are removed from the kernel that makes them, from the layers behind it, and from the kernel
/// that reads them. So in inference the copy computes the same up to rounding. Names stay. The optimizer of the
/// original does not fit. In training, dropout draws other numbers. InvalidArgument for a model that is not built.
Sequential remove_pruned_channels(const Sequential& model);

}  // namespace gradus
