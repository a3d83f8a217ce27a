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
  GlobalMaxPooling1D() : GlobalMaxPooling1D(false) {}
  explicit GlobalMaxPooling1D(bool keepdims);
};
struct GlobalMaxPooling2D : Module {
  GlobalMaxPooling2D() : GlobalMaxPooling2D(false) {}
  explicit GlobalMaxPooling2D(bool keepdims);
};
struct GlobalMaxPooling3D : Module {
  GlobalMaxPooling3D() : GlobalMaxPooling3D(false) {}
  explicit GlobalMaxPooling3D(bool keepdims);
};
/// In 1D of the places that count, if the input has a mask; none of them: NaN.
struct GlobalAveragePooling1D : Module {
  GlobalAveragePooling1D() : GlobalAveragePooling1D(false) {}
  explicit GlobalAveragePooling1D(bool keepdims);
};
struct GlobalAveragePooling2D : Module {
  GlobalAveragePooling2D() : GlobalAveragePooling2D(false) {}
  explicit GlobalAveragePooling2D(bool keepdims);
};
struct GlobalAveragePooling3D : Module {
  GlobalAveragePooling3D() : GlobalAveragePooling3D(false) {}
  explicit GlobalAveragePooling3D(bool keepdims);
};

/// Zeros around each spatial dimension: before and after it, one on either side unless said. InvalidArgument below 0.
struct ZeroPadding1D : Module {
  ZeroPadding1D() : ZeroPadding1D(1) {}
  explicit ZeroPadding1D(std::int64_t padding);
  explicit ZeroPadding1D(std::array<std::int64_t, 2> padding);
};
struct ZeroPadding2D : Module {
  ZeroPadding2D() : ZeroPadding2D(Pair(1)) {}
  explicit ZeroPadding2D(Pair padding);
  ZeroPadding2D(std::array<std::int64_t, 2> rows, std::array<std::int64_t, 2> columns);
};
struct ZeroPadding3D : Module {
  ZeroPadding3D() : ZeroPadding3D(Triple(1)) {}
  explicit ZeroPadding3D(Triple padding);
};

struct UpSamplingOptions {
  ResizeMethod interpolation = ResizeMethod::nearest;
};
/// `size` times as many elements along each spatial dimension: each repeated; of images also in between, as resize()
/// does it.
struct UpSampling1D : Module {
  UpSampling1D() : UpSampling1D(Single(2)) {}
  explicit UpSampling1D(Single size);
};
struct UpSampling2D : Module {
  UpSampling2D() : UpSampling2D(Pair(2)) {}
  explicit UpSampling2D(Pair size, UpSamplingOptions options = {});
};
struct UpSampling3D : Module {
  UpSampling3D() : UpSampling3D(Triple(2)) {}
  explicit UpSampling3D(Triple size);
};

}  // namespace gradus
