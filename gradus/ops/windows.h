/// Windows that slide over the spatial dimensions of [batch, spatial..., channels]: where they stand, and how many of
/// them there are. Convolutions and pooling share this.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>
#include "gradus/tensor/shape.h"

namespace gradus {

/// valid: windows lie within the input. same: ceil(size / stride) windows; of the padding that they need, the smaller
/// half stands before the input (0 and 1 for a window of 3 with stride 2 on an even size), as in TensorFlow.
enum class Padding { valid, same };

/// One number a spatial dimension, or one for all of them, or none: the default.
using Sizes = std::vector<std::int64_t>;
/// Before and after each spatial dimension; not empty: instead of a Padding.
using Paddings = std::vector<std::array<std::int64_t, 2>>;

// For the rooms of the library.

/// One number a spatial dimension in each of these.
struct Windows {
  Shape kernel, strides, dilations;
  Shape before;  // padding
  Shape after;   // padding that was asked for; windows may leave some of it out
  Shape size;    // how many windows there are
  /// From the first to the last element of a window along spatial dimension i, both included.
  std::int64_t reach(int i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

struct WindowOptions {
  Sizes strides = {}, dilations = {};
  Padding padding = Padding::valid;
  Paddings paddings = {};
  bool ceil_mode = false;  // windows that reach past the padding count, if they begin before it
};

/// The windows of `kernel` over the spatial dimensions of `x`, [batch, spatial..., channels] with one to three of them.
/// Mistakes open with `op`.
Windows windows_over(std::string_view op, const Spec& x, const Shape& kernel, const WindowOptions& options);

/// The spatial part of [batch, spatial..., channels].
Shape spatial_of(const Shape& shape);
/// [shape[0], spatial..., channels]
Shape with_spatial(const Shape& shape, const Shape& spatial, std::int64_t channels);
/// `given` as one number for each of `count` dimensions; `fallback` if none is given. All must be at least 1.
Shape one_each(std::string_view op, std::string_view what, const Sizes& given, int count, std::int64_t fallback);
/// The padding before an input that gets `windows` windows by Padding::same.
std::int64_t same_before(std::int64_t input, std::int64_t windows, std::int64_t stride, std::int64_t reach);

/// Attributes of a primitive, which may come from a text: `count` numbers of at least `least`; known ones unless that
/// is 0, as of padding, which follows from the size of the input.
void check_window_attribute(std::string_view op, std::string_view what, const Shape& given, int count,
                            std::int64_t least);

}  // namespace gradus
