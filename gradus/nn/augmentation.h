/// Image augmentation: layers that change images at random in training, and do nothing in inference, with Keras's
/// defaults. Images are [batch, height, width, channels] or [height, width, channels]. Each image is changed in its own
/// way. Integers give f32, except for flips and crops, which only move pixels.
#pragma once
#include <array>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

/// Axes that RandomFlip mirrors along.
enum class FlipMode { horizontal, vertical, horizontal_and_vertical };
/// Mirrors images along each of the axes with probability 1/2.
struct RandomFlip : Module {
  RandomFlip() : RandomFlip(FlipMode::horizontal_and_vertical) {}
  explicit RandomFlip(FlipMode mode);
  explicit RandomFlip(const char*) = delete;  // modes are FlipMode::horizontal, FlipMode::vertical
};

/// A range to draw from uniformly; one number f stands for {-f, f}. InvalidArgument unless -1 <= low <= high <= 1.
struct Factor {
  double low, high;  // bounds of the range
  Factor(double f) : low(-f), high(f) {}
  Factor(double from, double to) : low(from), high(to) {}
};
/// Values beyond the image: its mirror image, zeros, or the pixel at the border.
enum class FillMode { reflect, constant, nearest };
/// Options of the layers that move pixels.
struct RandomMoveOptions {
  FillMode fill_mode = FillMode::reflect;  // values beyond the image
};
/// Translates images by shares of height and width, down and to the right. Interpolates linearly between pixels, as the
/// next two. Sizes of images must be known.
struct RandomTranslation : Module {
  RandomTranslation(Factor height, Factor width, RandomMoveOptions options = {});
};
/// Rotates images by shares of a whole turn, counter-clockwise about the center.
struct RandomRotation : Module {
  explicit RandomRotation(Factor factor, RandomMoveOptions options = {});
};
/// Zooms out by a share (0.2: the image gets 20 % smaller), in by a negative one. The width follows the height by
/// default.
struct RandomZoom : Module {
  explicit RandomZoom(Factor height, RandomMoveOptions options = {});
  RandomZoom(Factor height, Factor width, RandomMoveOptions options = {});
};

/// Crops a box of this size at a random place, the same for all images of a batch. In inference, and for images that
/// are too small, it takes the largest box of that ratio in the middle, resized.
struct RandomCrop : Module {
  RandomCrop(std::int64_t height, std::int64_t width);
};

/// Options of the layers that change colours.
struct RandomColorOptions {
  std::array<double, 2> value_range{0, 255};  // range of the pixels; results are clipped to it
  static constexpr auto ranges() { return std::array{Allowed::finite("value_range")}; }
};
/// Adds a share of the value range.
struct RandomBrightness : Module {
  explicit RandomBrightness(Factor factor, RandomColorOptions options = {});
};
/// (x - mean) * (1 + drawn) + mean, with the mean of each channel.
struct RandomContrast : Module {
  explicit RandomContrast(Factor factor, RandomColorOptions options = {});
};

}  // namespace gradus
