/// Pooling, channels last: [batch, spatial..., channels] with one to three spatial dimensions. `window` has one number
/// per spatial dimension, or one for all. 16-bit floats are computed in f32 and rounded once.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/windows.h"

namespace gradus {

/// Options of pooling.
struct PoolingOptions {
  Sizes strides = {};  // one per spatial dimension, or one for all; none: the window, so windows do not overlap
  Padding padding = Padding::valid;  // padding around the input, by rule
  Paddings paddings = {};            // explicit padding, instead of `padding`
  Sizes dilations = {};              // distances between taps; none: 1
  bool ceil_mode = false;            // include windows that reach past the end of the padding, if they begin before it
  bool count_include_pad = false;    // averages count padding as zeros
};

/// Max pooling: the largest element of each window, which is never padding. Any number type. NaN if there is one; the
/// lowest number for a window without elements. The gradient goes to the first of equal elements.
Tensor max_pool(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
/// max_pool of an input with one spatial dimension.
Tensor max_pool1d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
/// max_pool of an input with two spatial dimensions.
Tensor max_pool2d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
/// max_pool of an input with three spatial dimensions.
Tensor max_pool3d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});

/// Result of max_pool_with_argmax.
struct MaxPoolWithArgmax {
  Tensor output;  // result of max_pool
  /// i64, in the shape of output: the flat row-major index of the element within its example, (row * columns + column)
  /// * channels + channel.
  Tensor argmax;
};
/// max_pool together with the indices of the largest elements.
MaxPoolWithArgmax max_pool_with_argmax(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});

/// Average pooling: the mean of each window, over its elements alone, or with zeros for padding. Floats. NaN for a
/// window without elements.
Tensor avg_pool(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
/// avg_pool of an input with one spatial dimension.
Tensor avg_pool1d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
/// avg_pool of an input with two spatial dimensions.
Tensor avg_pool2d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
/// avg_pool of an input with three spatial dimensions.
Tensor avg_pool3d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});

/// (sum |x|^p)^(1/p) of each window. Floats; p must be positive. The gradient is 0 where the sum is 0.
Tensor lp_pool(const Tensor& x, const Sizes& window, double p = 2, const PoolingOptions& options = {});

/// The largest element of each channel: [batch, spatial..., C] -> [batch, C]. Gradients of ties are split evenly.
Tensor global_max_pool(const Tensor& x);
/// The mean of each channel: [batch, spatial..., C] -> [batch, C].
Tensor global_avg_pool(const Tensor& x);
/// (sum |x|^p)^(1/p) of each channel: [batch, spatial..., C] -> [batch, C].
Tensor global_lp_pool(const Tensor& x, double p = 2);

/// Means of about equal parts, `output_size` of them along each spatial dimension. Part i of n elements in m parts is
/// [floor(i*n/m), ceil((i+1)*n/m)), so neighbours may share elements. Sizes must be known.
Tensor adaptive_avg_pool(const Tensor& x, const Sizes& output_size);
/// The largest elements of the parts that adaptive_avg_pool takes.
Tensor adaptive_max_pool(const Tensor& x, const Sizes& output_size);

/// Partial inverse of max_pool_with_argmax: zeros of [batch, output_size..., channels], to which each element of x is
/// added at its argmax. OutOfRange, at the run, for an argmax outside.
Tensor max_unpool(const Tensor& x, const Tensor& argmax, const Sizes& output_size);

/// Options of extract_patches and fold_patches.
struct PatchOptions {
  Sizes strides = {};                // one per spatial dimension, or one for all; none: 1
  Padding padding = Padding::valid;  // padding around the input, by rule
  Paddings paddings = {};            // explicit padding, instead of `padding`
  Sizes rates = {};                  // dilations: distances between taps; none: 1
};
/// The elements of every window as channels: T[batch, spatial..., C] -> T[batch, windows..., taps * C], in row-major
/// order of taps. Any number type; padding is zeros.
Tensor extract_patches(const Tensor& x, const Sizes& sizes, const PatchOptions& options = {});
/// The adjoint of extract_patches: T[batch, windows..., taps * C] -> T[batch, output_size..., C]. Each element is the
/// sum over the windows that contain it.
Tensor fold_patches(const Tensor& patches, const Sizes& output_size, const Sizes& sizes,
                    const PatchOptions& options = {});

}  // namespace gradus
