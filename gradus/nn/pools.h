/// Layers without variables over spatial dimensions, channels last, with Keras's defaults: pooling, padding,
/// upsampling.
#pragma once
#include <optional>
#include "gradus/nn/convolutions.h"
#include "gradus/ops/resize.h"

namespace gradus {

template <class Size> struct PoolOptionsOf {
  std::optional<Size> strides = {};  // none: the size of the pool
  Padding padding = Padding::valid;
};
using Pool1DOptions = PoolOptionsOf<Single>;
using PoolOptions = PoolOptionsOf<Pair>;
using Pool3DOptions = PoolOptionsOf<Triple>;

/// The largest element of each window, 2 along each spatial dimension unless a size is given; of equals the first gets
/// the gradient.
struct MaxPooling1D : Module {
  MaxPooling1D();
  explicit MaxPooling1D(Single size, Pool1DOptions options = {});
};
struct MaxPooling2D : Module {
  MaxPooling2D();
  explicit MaxPooling2D(Pair size, PoolOptions options = {});
};
struct MaxPooling3D : Module {
  MaxPooling3D();
  explicit MaxPooling3D(Triple size, Pool3DOptions options = {});
};

/// The mean of each window's elements; padding does not count.
struct AveragePooling1D : Module {
  AveragePooling1D();
  explicit AveragePooling1D(Single size, Pool1DOptions options = {});
};
struct AveragePooling2D : Module {
  AveragePooling2D();
  explicit AveragePooling2D(Pair size, PoolOptions options = {});
};
struct AveragePooling3D : Module {
  AveragePooling3D();
  explicit AveragePooling3D(Triple size, Pool3DOptions options = {});
};

/// Over all of each channel: [batch, spatial..., channels] -> [batch, channels]; with keepdims spatial dimensions of 1
/// stay.
struct GlobalMaxPooling1D : Module {
  explicit GlobalMaxPooling1D(bool keepdims = false);
};
struct GlobalMaxPooling2D : Module {
  explicit GlobalMaxPooling2D(bool keepdims = false);
};
struct GlobalMaxPooling3D : Module {
  explicit GlobalMaxPooling3D(bool keepdims = false);
};
/// In 1D of the places that count, if the input has a mask; none of them: NaN.
struct GlobalAveragePooling1D : Module {
  explicit GlobalAveragePooling1D(bool keepdims = false);
};
struct GlobalAveragePooling2D : Module {
  explicit GlobalAveragePooling2D(bool keepdims = false);
};
struct GlobalAveragePooling3D : Module {
  explicit GlobalAveragePooling3D(bool keepdims = false);
};

/// Zeros around each spatial dimension: before and after it, one on either side unless said. InvalidArgument below 0.
struct ZeroPadding1D : Module {
  explicit ZeroPadding1D(std::int64_t padding = 1);
  explicit ZeroPadding1D(std::array<std::int64_t, 2> padding);
};
struct ZeroPadding2D : Module {
  explicit ZeroPadding2D(Pair padding = 1);
  ZeroPadding2D(std::array<std::int64_t, 2> rows, std::array<std::int64_t, 2> columns);
};
struct ZeroPadding3D : Module {
  explicit ZeroPadding3D(Triple padding = 1);
};

struct UpSamplingOptions {
  ResizeMethod interpolation = ResizeMethod::nearest;
};
/// `size` times as many elements along each spatial dimension: each repeated; of images also in between, as resize()
/// does it.
struct UpSampling1D : Module {
  explicit UpSampling1D(Single size = 2);
};
struct UpSampling2D : Module {
  explicit UpSampling2D(Pair size = 2, UpSamplingOptions options = {});
};
struct UpSampling3D : Module {
  explicit UpSampling3D(Triple size = 2);
};

}  // namespace gradus
