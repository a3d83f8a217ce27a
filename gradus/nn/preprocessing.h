/// Layers that prepare images and numbers, and further spatial layers without variables. Channels last.
#pragma once
#include <array>
#include "gradus/nn/convolutions.h"
#include "gradus/ops/resize.h"

namespace gradus {

/// Returns x.
struct Identity : Module {
  Identity();
};
/// x * scale + offset. Integers give f32.
struct Rescaling : Module {
  explicit Rescaling(double scale, double offset = 0);
};
/// Resizes images to {height, width}.
struct Resizing : Module {
  Resizing(std::int64_t height, std::int64_t width, ResizeOptions options = {});
};
/// The middle of [..., height, width, channels]. If an image is too small, its largest middle part of that aspect ratio
/// is resized.
struct CenterCrop : Module {
  CenterCrop(std::int64_t height, std::int64_t width);
};
/// Cuts off elements at the begin and the end of each spatial dimension: by default one each, of Cropping2D none, as in
/// Keras. InvalidArgument where nothing would be left.
struct Cropping1D : Module {
  Cropping1D() : Cropping1D(std::array<std::int64_t, 2>{1, 1}) {}
  explicit Cropping1D(std::array<std::int64_t, 2> cropping);
};
/// Cropping1D with two spatial dimensions.
struct Cropping2D : Module {
  Cropping2D() : Cropping2D(Pair(0)) {}
  explicit Cropping2D(Pair cropping);
  Cropping2D(std::array<std::int64_t, 2> rows, std::array<std::int64_t, 2> columns);
};
/// Cropping1D with three spatial dimensions.
struct Cropping3D : Module {
  Cropping3D() : Cropping3D(Triple(1)) {}
  explicit Cropping3D(Triple cropping);
};

/// Means of about equal parts: `size` of them along each spatial dimension, which must be known.
struct AdaptiveAveragePooling1D : Module {
  explicit AdaptiveAveragePooling1D(Single size);
};
/// AdaptiveAveragePooling1D with two spatial dimensions.
struct AdaptiveAveragePooling2D : Module {
  explicit AdaptiveAveragePooling2D(Pair size);
};
/// AdaptiveAveragePooling1D with three spatial dimensions.
struct AdaptiveAveragePooling3D : Module {
  explicit AdaptiveAveragePooling3D(Triple size);
};
/// Largest elements of about equal parts: `size` of them along each spatial dimension, which must be known.
struct AdaptiveMaxPooling1D : Module {
  explicit AdaptiveMaxPooling1D(Single size);
};
/// AdaptiveMaxPooling1D with two spatial dimensions.
struct AdaptiveMaxPooling2D : Module {
  explicit AdaptiveMaxPooling2D(Pair size);
};
/// AdaptiveMaxPooling1D with three spatial dimensions.
struct AdaptiveMaxPooling3D : Module {
  explicit AdaptiveMaxPooling3D(Triple size);
};

}  // namespace gradus
