/// Geometry of windows: how many there are, where they begin, which padding they read.
#pragma once
#include "gradus/ops/windows.h"

namespace gradus {

/// Geometry of windows, one number per spatial dimension in each field.
struct Windows {
  Shape kernel, strides, dilations;  // sizes of a window, distances between windows, distances between taps
  Shape before;                      // padding before the input
  Shape after;                       // padding requested after it; windows may leave some of it out
  Shape size;                        // number of windows
  /// Distance from the first to the last element of a window along spatial dimension i, both included.
  std::int64_t reach(int i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

/// Options of windows_over.
struct WindowOptions {
  Sizes strides = {}, dilations = {};  // none: 1
  Padding padding = Padding::valid;    // padding, by rule
  Paddings paddings = {};              // explicit padding, instead of `padding`
  bool ceil_mode = false;              // count windows that reach past the padding, if they begin before it
};

/// The windows of `kernel` over the spatial dimensions of `x`, [batch, spatial..., channels] with one to three of them.
/// Errors open with `op`.
Windows windows_over(std::string_view op, const Spec& x, const Shape& kernel, const WindowOptions& options);

/// The spatial part of [batch, spatial..., channels].
Shape spatial_of(const Shape& shape);
/// The shape [shape[0], spatial..., channels].
Shape with_spatial(const Shape& shape, const Shape& spatial, std::int64_t channels);
/// `given` as one number for each of `count` dimensions, or `fallback` if it is empty. All must be at least 1.
Shape one_each(std::string_view op, std::string_view what, const Sizes& given, int count, std::int64_t fallback);
/// The padding before an input that has `windows` windows by Padding::same.
std::int64_t same_before(std::int64_t input, std::int64_t windows, std::int64_t stride, std::int64_t reach);

/// Checks attributes of a primitive, which may come from a text: `count` numbers of at least `least`. They must be
/// known unless `least` is 0, as for padding, which follows from the size of the input.
void check_window_attribute(std::string_view op, std::string_view what, const Shape& given, int count,
                            std::int64_t least);

}  // namespace gradus
