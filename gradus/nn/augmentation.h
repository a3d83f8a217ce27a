/// Layers that change images at random in training, and do nothing in inference; with Keras's defaults. Images are
/// [batch, height, width, channels] or [height, width, channels]; each is changed in its own way. Integers give f32,
/// but for flips and crops, which only move.
#pragma once
#include <array>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

enum class FlipMode { horizontal, vertical, horizontal_and_vertical };
/// Mirrors with probability 1/2, along each of the axes.
struct RandomFlip : Module {
  RandomFlip() : RandomFlip(FlipMode::horizontal_and_vertical) {}
  explicit RandomFlip(FlipMode mode);
};

/// A range to draw from, uniformly; one number f is {-f, f}. InvalidArgument unless -1 <= low <= high <= 1.
struct Factor {
  double low, high;
  Factor(double f) : low(-f), high(f) {}
  Factor(double from, double to) : low(from), high(to) {}
};
/// What lies beyond the image: its mirror image, numbers of 0, or the pixel at the border.
enum class FillMode { reflect, constant, nearest };
struct RandomMoveOptions {
  FillMode fill_mode = FillMode::reflect;
};
/// Shares of height and width, down and to the right. Between pixels it is linear, as in the next two. Sizes of images
/// must be known.
struct RandomTranslation : Module {
  RandomTranslation(Factor height, Factor width, RandomMoveOptions options = {});
};
/// Shares of a whole turn, against the clock, about the center.
struct RandomRotation : Module {
  explicit RandomRotation(Factor factor, RandomMoveOptions options = {});
};
/// Out by a share (0.2: the image is 20 % smaller), in by a negative one; width as height.
struct RandomZoom : Module {
  explicit RandomZoom(Factor height, RandomMoveOptions options = {});
  RandomZoom(Factor height, Factor width, RandomMoveOptions options = {});
};

/// A box of this size at a random place, the same for all images of a batch. In inference, and of images that are too
/// small, the largest box of that ratio in the middle, resized.
struct RandomCrop : Module {
  RandomCrop(std::int64_t height, std::int64_t width);
};

struct RandomColorOptions {
  std::array<double, 2> value_range{0, 255};  // of the pixels, cut to it
  static constexpr auto ranges() { return std::array{Allowed::finite("value_range")}; }
};
/// Adds a share of the value range.
struct RandomBrightness : Module {
  explicit RandomBrightness(Factor factor, RandomColorOptions options = {});
};
/// (x - mean) * (1 + drawn) + mean, the mean of each channel.
struct RandomContrast : Module {
  explicit RandomContrast(Factor factor, RandomColorOptions options = {});
};

}  // namespace gradus
