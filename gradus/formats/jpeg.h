/// The decoder of JPEG files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Decodes a JPEG file. channels: 1 or 3; 0: as in the file, 1 or 3. See decode_image.
Tensor decode_jpeg(std::span<const std::byte> bytes, const std::string& name, int channels, std::int64_t pixels);

}  // namespace gradus
