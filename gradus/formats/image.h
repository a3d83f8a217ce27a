/// Images from JPEG and PNG files, decoded by libjpeg and libpng.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The largest number of pixels that is decoded. Larger images are a DataError, since a few bytes can claim any size.
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 27;

/// Decodes an image: u8 [height, width, channels], with the channels of the file: 1 grey, 2 grey and alpha, 3 RGB, 4
/// RGBA. JPEG and PNG are recognised by their first bytes. 16 bits become 8, scaled and rounded; palettes become RGB.
/// Values are sRGB's; those of a PNG with another gAMA chunk are converted. DataError, with the file, if it is no
/// image, damaged or cut off. Unavailable if it cannot be read.
Tensor load_image(const std::filesystem::path& file);
/// load_image with 1, 3 or 4 channels: grey is repeated, colours are weighted to grey, alpha is dropped, or added as
/// opaque. 0: as in the file. InvalidArgument for another number.
Tensor load_image(const std::filesystem::path& file, int channels);
/// load_image for bytes in memory; channels 0: as in the file. `name` stands for the file in messages. DataError for an
/// image of more than `pixels`.
Tensor decode_image(std::span<const std::byte> bytes, const std::string& name, int channels = 0,
                    std::int64_t pixels = most_pixels);

/// Resizes a u8 image [h, w, c], bilinearly with half-pixel centres and rounded to nearest, into `out` [height, width,
/// c]. No filter against aliasing, as tf.image.resize.
void resize_image(const Tensor& image, std::int64_t height, std::int64_t width, std::uint8_t* out);

}  // namespace gradus
