/// Layers without variables over spatial dimensions, channels last, with Keras's defaults: pooling, padding,
/// upsampling.
#pragma once
#include <concepts>
#include <optional>
#include "gradus/nn/convolutions.h"
#include "gradus/ops/resize.h"

namespace gradus {

/// A size that may be left out: 2, or {2, 2}.
template <class Size> class OptionalSize : public std::optional<Size> {
 public:
  using std::optional<Size>::optional;
  template <class... N>
    requires(sizeof...(N) > 1 && std::constructible_from<Size, N...>)
  OptionalSize(N... sizes) : std::optional<Size>(Size(sizes...)) {}
};
/// Options of pooling layers.
template <class Size> struct PoolOptionsOf {
  OptionalSize<Size> strides = {};   // none: the size of the pool
  Padding padding = Padding::valid;  // padding around the input
};
/// Options with one spatial dimension.
using Pool1DOptions = PoolOptionsOf<Single>;
/// Options with two spatial dimensions.
using PoolOptions = PoolOptionsOf<Pair>;
/// Options with three spatial dimensions.
using Pool3DOptions = PoolOptionsOf<Triple>;

/// Max pooling: the largest element of each window, by default of 2 along each spatial dimension. The first of equal
/// elements gets the gradient.
struct MaxPooling1D : Module {
  MaxPooling1D();
  explicit MaxPooling1D(Single size, Pool1DOptions options = {});
};
/// MaxPooling1D with two spatial dimensions.
struct MaxPooling2D : Module {
  MaxPooling2D();
  explicit MaxPooling2D(Pair size, PoolOptions options = {});
};
/// MaxPooling1D with three spatial dimensions.
struct MaxPooling3D : Module {
  MaxPooling3D();
  explicit MaxPooling3D(Triple size, Pool3DOptions options = {});
};

/// Average pooling: the mean of each window's elements, by default of 2 along each spatial dimension. Padding does not
/// count.
struct AveragePooling1D : Module {
  AveragePooling1D();
  explicit AveragePooling1D(Single size, Pool1DOptions options = {});
};
/// AveragePooling1D with two spatial dimensions.
struct AveragePooling2D : Module {
  AveragePooling2D();
  explicit AveragePooling2D(Pair size, PoolOptions options = {});
};
/// AveragePooling1D with three spatial dimensions.
struct AveragePooling3D : Module {
  AveragePooling3D();
  explicit AveragePooling3D(Triple size, Pool3DOptions options = {});
};

/// The largest element of each channel: [batch, spatial..., channels] -> [batch, channels]. With keepdims, spatial
/// dimensions of 1 stay.
struct GlobalMaxPooling1D : Module {
  GlobalMaxPooling1D() : GlobalMaxPooling1D(false) {}
  explicit GlobalMaxPooling1D(bool keepdims);
};
/// GlobalMaxPooling1D with two spatial dimensions.
struct GlobalMaxPooling2D : Module {
  GlobalMaxPooling2D() : GlobalMaxPooling2D(false) {}
  explicit GlobalMaxPooling2D(bool keepdims);
};
/// GlobalMaxPooling1D with three spatial dimensions.
struct GlobalMaxPooling3D : Module {
  GlobalMaxPooling3D() : GlobalMaxPooling3D(false) {}
  explicit GlobalMaxPooling3D(bool keepdims);
};
/// The mean of each channel: [batch, spatial..., channels] -> [batch, channels]. In 1D, if the input has a mask, over
/// the time steps that count; NaN if none does.
struct GlobalAveragePooling1D : Module {
  GlobalAveragePooling1D() : GlobalAveragePooling1D(false) {}
  explicit GlobalAveragePooling1D(bool keepdims);
};
/// GlobalAveragePooling1D with two spatial dimensions, without masks.
struct GlobalAveragePooling2D : Module {
  GlobalAveragePooling2D() : GlobalAveragePooling2D(false) {}
  explicit GlobalAveragePooling2D(bool keepdims);
};
/// GlobalAveragePooling1D with three spatial dimensions, without masks.
struct GlobalAveragePooling3D : Module {
  GlobalAveragePooling3D() : GlobalAveragePooling3D(false) {}
  explicit GlobalAveragePooling3D(bool keepdims);
};

/// Adds zeros before and after each spatial dimension, by default one on either side. InvalidArgument below 0.
struct ZeroPadding1D : Module {
  ZeroPadding1D() : ZeroPadding1D(1) {}
  explicit ZeroPadding1D(std::int64_t padding);
  explicit ZeroPadding1D(std::array<std::int64_t, 2> padding);
};
/// ZeroPadding1D with two spatial dimensions.
struct ZeroPadding2D : Module {
  ZeroPadding2D() : ZeroPadding2D(Pair(1)) {}
  explicit ZeroPadding2D(Pair padding);
  ZeroPadding2D(std::array<std::int64_t, 2> rows, std::array<std::int64_t, 2> columns);
};
/// ZeroPadding1D with three spatial dimensions.
struct ZeroPadding3D : Module {
  ZeroPadding3D() : ZeroPadding3D(Triple(1)) {}
  explicit ZeroPadding3D(Triple padding);
};

/// Options of UpSampling2D.
struct UpSamplingOptions {
  ResizeMethod interpolation = ResizeMethod::nearest;  // nearest repeats pixels; others are resize()'s
};
/// `size` times as many elements along each spatial dimension: each is repeated. Images may also be interpolated, as by
/// resize().
struct UpSampling1D : Module {
  UpSampling1D() : UpSampling1D(Single(2)) {}
  explicit UpSampling1D(Single size);
};
/// UpSampling1D with two spatial dimensions.
struct UpSampling2D : Module {
  UpSampling2D() : UpSampling2D(Pair(2)) {}
  explicit UpSampling2D(Pair size, UpSamplingOptions options = {});
};
/// UpSampling1D with three spatial dimensions.
struct UpSampling3D : Module {
  UpSampling3D() : UpSampling3D(Triple(2)) {}
  explicit UpSampling3D(Triple size);
};

}  // namespace gradus
