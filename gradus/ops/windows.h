/// Windows that slide over the spatial dimensions of [batch, spatial..., channels]: their positions and number.
/// Convolutions and pooling share this.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>
#include "gradus/tensor/shape.h"

namespace gradus {

/// Rule for padding. valid: windows lie within the input. same: ceil(size / stride) windows. The smaller half of the
/// padding that these need is before the input (0 and 1 for a window of 3 with stride 2 on an even size), as in
/// TensorFlow.
enum class Padding { valid, same };

/// One number per spatial dimension, or one for all of them, or none: the default.
using Sizes = std::vector<std::int64_t>;
/// Explicit padding {before, after} of each dimension: of the spatial ones, for windows. If not empty, it replaces a
/// Padding.
using Paddings = std::vector<std::array<std::int64_t, 2>>;

}  // namespace gradus
