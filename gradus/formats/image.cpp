/// PNG through libpng's simplified interface, which handles its own jumps; channels and sizes.
#include "gradus/formats/image.h"
#include <png.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>
#if defined(__x86_64__)
#include <emmintrin.h>
#else
#include <arm_neon.h>
#endif
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/byte_stream.h"
#include "gradus/formats/jpeg.h"

namespace gradus {
namespace {

constexpr std::array jpeg_begin{std::byte{0xff}, std::byte{0xd8}, std::byte{0xff}};
constexpr std::array png_begin{std::byte{0x89}, std::byte{'P'}, std::byte{'N'}, std::byte{'G'}};

bool begins_with(std::span<const std::byte> bytes, std::span<const std::byte> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

/// Grey, grey and alpha, RGB or RGBA, as in the file.
Tensor decode_png(std::span<const std::byte> bytes, const std::string& name, std::int64_t pixels) {
  struct Image : png_image {
    Image() : png_image{} { version = PNG_IMAGE_VERSION; }
    ~Image() { png_image_free(this); }
  } png;
  require<DataError>(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0, name,
                     ": a damaged PNG: ", png.message);
  const std::int64_t height = png.height, width = png.width;
  require<DataError>(height > 0 && width > 0 && height <= pixels / width, name, ": an image of ", height, " x ", width,
                     " pixels; expected 1 to ", pixels);
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;                       // else 16 bits without gAMA would be taken as linear
  png.format &= PNG_FORMAT_FLAG_ALPHA | PNG_FORMAT_FLAG_COLOR;  // 8 bits, no palette, in this order
  const auto channels = static_cast<std::int64_t>(PNG_IMAGE_SAMPLE_CHANNELS(png.format));
  Ref<Buffer> image = Buffer::allocate(height * width * channels, "image");
  require<DataError>(
      png_image_finish_read(&png, nullptr, image->data(), static_cast<png_int_32>(width * channels), nullptr) != 0 &&
          !(png.warning_or_error & PNG_IMAGE_ERROR),
      name, ": a damaged PNG: ", png.message);
  return Tensor::of_buffer({u8, {height, width, channels}}, std::move(image));
}

/// Rec. 601, in the fixed-point numbers of libjpeg.
std::uint8_t grey_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
}

Tensor with_channels(const Tensor& image, std::int64_t wanted) {
  const std::int64_t given = image.shape()[2], n = image.shape()[0] * image.shape()[1];
  if (wanted == 0 || wanted == given) return image;
  Ref<Buffer> changed = Buffer::allocate(n * wanted, "image");
  const std::uint8_t* from = image.host<std::uint8_t>();
  std::uint8_t* to = changed->data<std::uint8_t>();
  const bool coloured = given >= 3, alpha = given == 2 || given == 4;
  for (std::int64_t i = 0; i < n; ++i, from += given, to += wanted) {
    if (wanted == 1) {
      to[0] = coloured ? grey_of(from) : from[0];
      continue;
    }
    for (int c = 0; c < 3; ++c) to[c] = from[coloured ? c : 0];
    if (wanted == 4) to[3] = alpha ? from[given - 1] : 255;
  }
  return Tensor::of_buffer({u8, {image.shape()[0], image.shape()[1], wanted}}, std::move(changed));
}

/// Where a row or column of the result lies between two of the source.
struct Between {
  std::int64_t low, high;
  float weight;  // of high
};
std::vector<Between> places(std::int64_t from, std::int64_t to) {
  std::vector<Between> out;
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * scale - 0.5f, floor = std::floor(at);
    const auto low = static_cast<std::int64_t>(floor);
    out.push_back(
        {std::clamp<std::int64_t>(low, 0, from - 1), std::clamp<std::int64_t>(low + 1, 0, from - 1), at - floor});
  }
  return out;
}

/// Two rows of a source, and the row between them that is made.
struct RowBetween {
  const std::uint8_t *low, *high;
  float weight;                         // of high
  std::int64_t source, made, channels;  // elements of either row
  std::uint8_t* out;
};

void interpolate_element(const RowBetween& row, const Between& x, std::int64_t pixel, std::int64_t channel) {
  const auto at = [&](const std::uint8_t* from) {
    const float left = from[x.low * row.channels + channel], right = from[x.high * row.channels + channel];
    return left + (right - left) * x.weight;
  };
  const float top = at(row.low), value = top + (at(row.high) - top) * row.weight;
  row.out[pixel * row.channels + channel] = static_cast<std::uint8_t>(std::lrintf(value));
}

#if defined(__x86_64__)
using FourFloats = __m128;
FourFloats four_floats(const std::uint8_t* from) {
  std::int32_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  const __m128i zero = _mm_setzero_si128();
  return _mm_cvtepi32_ps(_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), zero), zero));
}
FourFloats between(FourFloats low, FourFloats high, float weight) {
  return _mm_add_ps(low, _mm_mul_ps(_mm_sub_ps(high, low), _mm_set1_ps(weight)));
}
/// To nearest even.
std::int32_t four_bytes(FourFloats x) {
  const __m128i rounded = _mm_cvtps_epi32(x);
  return _mm_cvtsi128_si32(_mm_packus_epi16(_mm_packs_epi32(rounded, rounded), rounded));
}
#else
using FourFloats = float32x4_t;
FourFloats four_floats(const std::uint8_t* from) {
  std::uint32_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(bytes)))));
}
FourFloats between(FourFloats low, FourFloats high, float weight) {
  return vaddq_f32(low, vmulq_f32(vsubq_f32(high, low), vdupq_n_f32(weight)));
}
/// To nearest even.
std::int32_t four_bytes(FourFloats x) {
  const int16x4_t rounded = vqmovn_s32(vcvtnq_s32_f32(x));
  return vget_lane_s32(vreinterpret_s32_u8(vqmovun_s16(vcombine_s16(rounded, rounded))), 0);
}
#endif

/// Up to four channels of a pixel as one vector, and bytes behind them, which are written again. SSE2 and NEON are in
/// every processor of their architectures.
void interpolate_pixel(const RowBetween& row, const Between& x, std::int64_t pixel) {
  const auto at = [&](const std::uint8_t* from) {
    return between(four_floats(from + x.low * row.channels), four_floats(from + x.high * row.channels), x.weight);
  };
  const std::int32_t bytes = four_bytes(between(at(row.low), at(row.high), row.weight));
  std::memcpy(row.out + pixel * row.channels, &bytes, sizeof bytes);
}

void interpolate_row(const RowBetween& row, const std::vector<Between>& columns) {
  for (std::int64_t pixel = 0; pixel < std::ssize(columns); ++pixel) {
    const Between& x = columns[static_cast<std::size_t>(pixel)];
    const bool is_within = x.high * row.channels + 4 <= row.source && pixel * row.channels + 4 <= row.made;
    if (row.channels <= 4 && is_within) interpolate_pixel(row, x, pixel);
    else
      for (std::int64_t c = 0; c < row.channels; ++c) interpolate_element(row, x, pixel, c);
  }
}

}  // namespace

Tensor decode_image(std::span<const std::byte> bytes, const std::string& name, int channels, std::int64_t pixels) {
  const HostFloats floats;
  require(channels == 0 || channels == 1 || channels == 3 || channels == 4, name,
          ": expected 1, 3 or 4 channels, or 0 for those of the file, got ", channels);
  require<DataError>(!bytes.empty(), name, ": the file is empty");
  if (begins_with(bytes, jpeg_begin))
    return with_channels(decode_jpeg(bytes, name, channels == 4 ? 3 : channels, pixels), channels);
  require<DataError>(begins_with(bytes, png_begin), name, ": byte 0: neither a JPEG nor a PNG file");
  return with_channels(decode_png(bytes, name, pixels), channels);
}

Tensor load_image(const std::filesystem::path& file) { return load_image(file, 0); }

Tensor load_image(const std::filesystem::path& file, int channels) {
  return decode_image(read_to_end(*open_file(file)), file.string(), channels);
}

void resize_image(const Tensor& image, std::int64_t height, std::int64_t width, std::uint8_t* out) {
  const HostFloats floats;
  const std::int64_t channels = image.shape()[2];
  const std::uint8_t* pixels = image.host<std::uint8_t>();
  if (image.shape()[0] == height && image.shape()[1] == width) {
    std::memcpy(out, pixels, static_cast<std::size_t>(height * width * channels));
    return;
  }
  const std::vector<Between> columns = places(image.shape()[1], width);
  const std::int64_t source = image.shape()[1] * channels, made = width * channels;
  for (const Between& y : places(image.shape()[0], height)) {
    interpolate_row({pixels + y.low * source, pixels + y.high * source, y.weight, source, made, channels, out},
                    columns);
    out += made;
  }
}

}  // namespace gradus
