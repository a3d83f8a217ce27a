/// Images from JPEG and PNG files, decoded by libjpeg and libpng.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Larger pictures are refused: a few bytes can claim any size.
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 27;

/// u8 [height, width, channels], with as many channels as the file has: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA; JPEG
/// and PNG, told by their first bytes. 16 bits become 8, scaled and rounded, palettes RGB; values are sRGB's, and those
/// of a PNG whose gAMA chunk says otherwise are converted. DataError, with the file, of what is no image or is damaged
/// or cut off; Unavailable if it cannot be read.
Tensor load_image(const std::filesystem::path& file);
/// The same with 1, 3 or 4 channels: grey is repeated, colours are weighed to grey, alpha is dropped, or is opaque.
/// InvalidArgument for another number, but 0: as in the file.
Tensor load_image(const std::filesystem::path& file, int channels);
/// The same of bytes in memory; channels 0: as in the file. `name` stands for the file in messages. DataError for an
/// image of more than `pixels`.
Tensor decode_image(std::span<const std::byte> bytes, const std::string& name, int channels = 0,
                    std::int64_t pixels = most_pixels);

/// u8 [h, w, c] at another size, bilinearly with half-pixel centres and rounded to nearest, into `out` [height, width,
/// c]; no filter against aliasing, as tf.image.resize.
void resize_image(const Tensor& image, std::int64_t height, std::int64_t width, std::uint8_t* out);

}  // namespace gradus
