/// Images as PNG files.
#pragma once
#include <filesystem>
#include <string>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Writes an image: u8 [height, width, channels], or [height, width] for grey. 1 to 4 channels: grey, grey and alpha,
/// RGB, RGBA. The file appears whole or not at all. InvalidArgument for another dtype or shape, and for an image
/// without pixels. Unavailable if the file cannot be written, ResourceExhausted on a full disk or without memory.
void save_png(const std::filesystem::path& file, const Tensor& image);
/// The bytes of such a file; `op` opens messages.
std::string encode_png(const Tensor& image, std::string_view op);

}  // namespace gradus
