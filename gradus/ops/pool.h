/// Pooling, channels last: [batch, spatial..., channels] with one to three spatial dimensions. `window` has one number
/// a spatial dimension, or one for all. 16-bit floats are computed in f32 and rounded once.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/windows.h"

namespace gradus {

struct PoolingOptions {
  Sizes strides = {};  // none: those of the window, so that windows do not overlap
  Padding padding = Padding::valid;
  Paddings paddings = {};  // explicit, instead of `padding`
  Sizes dilations = {};
  bool ceil_mode = false;          // windows that reach past the padding count, if they begin before it
  bool count_include_pad = false;  // of averages: padding counts as zeros
};

/// The largest element of each window: padding never is. Any number type; NaN if there is one; of a window without
/// elements the lowest number. The gradient goes to the first of equals.
Tensor max_pool(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
Tensor max_pool1d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
Tensor max_pool2d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
Tensor max_pool3d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});

struct MaxPoolWithArgmax {
  Tensor output;
  /// i64, of the shape of output: where it stood, as the flat row-major index within its example,
  /// (row * columns + column) * channels + channel.
  Tensor argmax;
};
MaxPoolWithArgmax max_pool_with_argmax(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});

/// The mean of each window: of its elements alone, or with zeros for padding. Floats; NaN of a window without elements.
Tensor avg_pool(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
Tensor avg_pool1d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
Tensor avg_pool2d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});
Tensor avg_pool3d(const Tensor& x, const Sizes& window, const PoolingOptions& options = {});

/// (sum |x|^p)^(1/p) of each window. Floats; p must be positive. The gradient where the sum is 0 is 0.
Tensor lp_pool(const Tensor& x, const Sizes& window, double p = 2, const PoolingOptions& options = {});

/// Over all of each channel: [batch, spatial..., C] -> [batch, C]. Gradients of ties are split evenly.
Tensor global_max_pool(const Tensor& x);
Tensor global_avg_pool(const Tensor& x);
/// (sum |x|^p)^(1/p)
Tensor global_lp_pool(const Tensor& x, double p = 2);

/// Means of about equal parts, `output_size` along each spatial dimension: part i of n elements in m parts is
/// [floor(i*n/m), ceil((i+1)*n/m)), so that neighbours may share elements. Sizes must be known.
Tensor adaptive_avg_pool(const Tensor& x, const Sizes& output_size);
/// The largest elements of the same parts.
Tensor adaptive_max_pool(const Tensor& x, const Sizes& output_size);

/// Undoes a max_pool_with_argmax: zeros of [batch, output_size..., channels], to which each element of x is added where
/// argmax says. OutOfRange, at the run, for an argmax outside.
Tensor max_unpool(const Tensor& x, const Tensor& argmax, const Sizes& output_size);

struct PatchOptions {
  Sizes strides = {};  // none: 1
  Padding padding = Padding::valid;
  Paddings paddings = {};
  Sizes rates = {};  // dilations
};
/// Every window's elements in place of channels: T[batch, spatial..., C] -> T[batch, windows..., taps * C], in
/// row-major order of taps. Any number type; padding is zeros.
Tensor extract_patches(const Tensor& x, const Sizes& sizes, const PatchOptions& options = {});
/// The adjoint of extract_patches: T[batch, windows..., taps * C] -> T[batch, output_size..., C], each element the sum
/// over the windows that it stands in.
Tensor fold_patches(const Tensor& patches, const Sizes& output_size, const Sizes& sizes,
                    const PatchOptions& options = {});

}  // namespace gradus
