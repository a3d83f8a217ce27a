/// Images: values of TensorFlow, ways there and back, every cut and damage an error.
#include <gtest/gtest.h>
#include <zlib.h>
#include <filesystem>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/byte_stream.h"
#include "gradus/formats/image.h"
#include "gradus/formats/png_writer.h"
#include "tests/formats/ramp_jpeg.h"
#include "tests/test_directory.h"

namespace gradus::image_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Tensor picture(const Shape& shape, const Bytes& values) {
  Ref<Buffer> buffer = Buffer::allocate(std::ssize(values));
  std::copy(values.begin(), values.end(), buffer->data<std::uint8_t>());
  return Tensor::of_buffer({u8, shape}, std::move(buffer));
}
Bytes counted(std::int64_t n) {
  Bytes values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i % 251);
  return values;
}
Tensor decode(std::string_view bytes, int channels = 0) {
  return decode_image(std::as_bytes(std::span(bytes)), "a.png", channels);
}
std::span<const std::byte> jpeg() { return std::as_bytes(std::span(ramp_jpeg)); }

TEST(Image, PngThereAndBack) {
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    const Bytes values = counted(7 * 5 * channels);
    const Tensor again = decode(encode_png(picture({7, 5, channels}, values), "test"));
    EXPECT_EQ(again.shape(), (Shape{7, 5, channels}));
    EXPECT_EQ(again.to_vector<std::uint8_t>(), values);
  }
}

/// Of a grey picture of bytes, each pair as one value of 16 bits: only the header differs.
std::string of_16_bits(std::string png, std::uint32_t width) {
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) png[at + i] = static_cast<char>(value >> (24 - 8 * i) & 0xff);
  };
  put(16, width);
  png[24] = 16;
  put(29, static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(png.data()) + 12, 17)));
  return png;
}

TEST(Image, SixteenBitsAreScaled) {
  const Bytes pairs{0, 0, 0x40, 0x40, 0x80, 0x80, 0x12, 0xff, 0xff, 0xff, 1, 0};
  const Tensor image = decode(of_16_bits(encode_png(picture({2, 6, 1}, pairs), "test"), 3));
  EXPECT_EQ(image.shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(image.to_vector<std::uint8_t>(), (Bytes{0, 0x40, 0x80, 0x13, 0xff, 1}));
}

TEST(Image, ChannelsAreConverted) {
  const std::string rgb = encode_png(picture({1, 2, 3}, {255, 0, 0, 10, 20, 30}), "test");
  EXPECT_EQ(decode(rgb, 1).to_vector<std::uint8_t>(), (Bytes{76, 18}));
  EXPECT_EQ(decode(rgb, 4).to_vector<std::uint8_t>(), (Bytes{255, 0, 0, 255, 10, 20, 30, 255}));
  const std::string grey_alpha = encode_png(picture({1, 2, 2}, {7, 0, 9, 128}), "test");
  EXPECT_EQ(decode(grey_alpha, 3).to_vector<std::uint8_t>(), (Bytes{7, 7, 7, 9, 9, 9}));
  EXPECT_EQ(decode(grey_alpha, 4).to_vector<std::uint8_t>(), (Bytes{7, 7, 7, 0, 9, 9, 9, 128}));
  EXPECT_EQ(decode(grey_alpha, 1).to_vector<std::uint8_t>(), (Bytes{7, 9}));
  EXPECT_THROW(decode(rgb, 2), InvalidArgument);
}

TEST(Image, JpegAsTensorFlowDecodesIt) {
  const Tensor image = decode_image(jpeg(), "a.jpg");
  ASSERT_EQ(image.shape(), (Shape{16, 20, 3}));
  const Bytes pixels = image.to_vector<std::uint8_t>();
  EXPECT_EQ(std::accumulate(pixels.begin(), pixels.end(), 0), 113059);
  const std::size_t at = (3 * 20 + 5) * 3, there = (10 * 20 + 11) * 3;
  EXPECT_EQ((Bytes{pixels[at], pixels[at + 1], pixels[at + 2]}), (Bytes{12, 15, 20}));
  EXPECT_EQ((Bytes{pixels[there], pixels[there + 1], pixels[there + 2]}), (Bytes{144, 147, 152}));
  EXPECT_EQ(decode_image(jpeg(), "a.jpg", 1).shape(), (Shape{16, 20, 1}));
  EXPECT_EQ(decode_image(jpeg(), "a.jpg", 4).shape(), (Shape{16, 20, 4}));
}

TEST(Image, ResizedAsTensorFlowDoes) {
  const Tensor image = picture({4, 5, 3}, counted(60));
  Bytes out(3 * 7 * 3);
  resize_image(image, 3, 7, out.data());
  EXPECT_EQ(out, (Bytes{3,  4,  4,  4,  5,  6,  6,  7,  8,  8,  10, 10, 11, 12, 13, 13, 14, 15, 14, 16, 16,
                        22, 24, 24, 24, 25, 26, 26, 27, 28, 28, 30, 30, 31, 32, 33, 33, 34, 35, 34, 36, 36,
                        42, 44, 44, 44, 45, 46, 46, 47, 48, 48, 50, 50, 51, 52, 53, 53, 54, 55, 54, 56, 56}));
  Bytes larger(6 * 4 * 3);
  resize_image(image, 6, 4, larger.data());
  EXPECT_EQ(std::accumulate(larger.begin(), larger.end(), 0), 2124);
}

/// Pixels of up to four channels are vectors, but not at the ends of rows.
TEST(Image, EveryNumberOfChannelsIsResizedAlike) {
  for (const std::int64_t channels : {1, 3, 4, 5})
    for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {2, 2}, {5, 40}, {13, 3}}) {
      const std::int64_t rows = 6, columns = 7, row = columns * channels;
      Bytes pixels(static_cast<std::size_t>(rows * row));
      for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 97 + i * i % 31);
      Bytes out(static_cast<std::size_t>(height * width * channels) + 1, 77), expected = out;
      resize_image(picture({rows, columns, channels}, pixels), height, width, out.data());
      const auto place = [](std::int64_t i, std::int64_t from, std::int64_t to) {
        return (static_cast<float>(i) + 0.5f) * (static_cast<float>(from) / static_cast<float>(to)) - 0.5f;
      };
      for (std::int64_t i = 0; i < height * width * channels; ++i) {
        const float y = place(i / channels / width, rows, height), x = place(i / channels % width, columns, width);
        const auto at = [&](float r, float c) {
          const auto within = [](float k, std::int64_t n) {
            return std::clamp<std::int64_t>(static_cast<std::int64_t>(k), 0, n - 1);
          };
          const std::int64_t element = within(r, rows) * row + within(c, columns) * channels + i % channels;
          return static_cast<float>(pixels[static_cast<std::size_t>(element)]);
        };
        const float top = std::floor(y), left = std::floor(x);
        const auto across = [&](float r) { return at(r, left) + (at(r, left + 1) - at(r, left)) * (x - left); };
        const float value = across(top) + (across(top + 1) - across(top)) * (y - top);
        expected[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(std::lrintf(value));
      }
      EXPECT_EQ(out, expected) << channels << " channels, " << height << " x " << width;
    }
}

TEST(Image, CutOffFilesAreErrors) {
  const std::string png = encode_png(picture({9, 8, 3}, counted(216)), "test");
  for (std::size_t size = 0; size + 12 < png.size(); ++size)  // without the mark of the end a picture may be whole
    EXPECT_THROW(decode(std::string_view(png).substr(0, size)), DataError) << size;
  for (std::size_t size = 0; size + 2 < jpeg().size(); ++size)
    EXPECT_THROW(decode_image(jpeg().first(size), "a.jpg"), DataError) << size;
}

TEST(Image, DamageIsNoCrash) {
  const std::string png = encode_png(picture({9, 8, 3}, counted(216)), "test");
  const std::string jpg(reinterpret_cast<const char*>(ramp_jpeg), sizeof ramp_jpeg);
  for (const std::string& whole : {png, jpg})
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
      try {
        decode_image(std::as_bytes(std::span(damaged)), "damaged", 3, 1 << 16);
      } catch (const DataError&) {}
    }
}

TEST(Image, FilesAndLimits) {
  const EmptyTestDirectory directory;
  const auto file = directory.path() / "image.png";
  save_png(file, picture({2, 3, 1}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(load_image(file).to_vector<std::uint8_t>(), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_THROW(decode_image(read_to_end(*open_file(file)), "small", 0, 5), DataError);
  std::filesystem::remove(file);
  EXPECT_THROW(load_image(file), Unavailable);
  EXPECT_THROW(decode("neither of them"), DataError);
}

}  // namespace
}  // namespace gradus::image_test
