/// Records and examples: the bytes of TensorFlow, ways there and back, and every kind of damage.
#include <gtest/gtest.h>
#include <zlib.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/crc32c.h"
#include "gradus/formats/tfrecord.h"
#include "gradus/base/input_file.h"
#include "tests/test_directory.h"

namespace gradus::tfrecord_test {
namespace {

std::span<const std::byte> bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

Tensor floats(const std::vector<float>& values) {
  Ref<Buffer> buffer = Buffer::allocate(std::ssize(values) * 4);
  std::copy(values.begin(), values.end(), buffer->data<float>());
  return Tensor::of_buffer({f32, {std::ssize(values)}}, std::move(buffer));
}

/// A record as TensorFlow 2 writes it: tf.train.Example with x: [1, 2, 3], y: [5], z: b"abc".
constexpr std::string_view example{
    "\x0a\x31\x0a\x15\x0a\x01x\x12\x10\x12\x0e\x0a\x0c\x00\x00\x80?\x00\x00\x00@\x00\x00@@"
    "\x0a\x0a\x0a\x01y\x12\x05\x1a\x03"
    "\x0a\x01\x05\x0a\x0c\x0a\x01z\x12\x07\x0a\x05\x0a\x03"
    "abc",
    51};

class Records : public testing::Test {
 protected:
  const EmptyTestDirectory directory_;
  const std::filesystem::path& folder_ = directory_.path();
};

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(bytes_of_text("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Example, AsTensorFlowWritesIt) {
  const auto features = parse_example(bytes_of_text(example), "here");
  EXPECT_EQ(features.size(), 3u);
  EXPECT_EQ(features.at("x").to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(features.at("y").to_vector<std::int64_t>(), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(features.at("z").to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{'a', 'b', 'c'}));
  const auto again = parse_example(bytes_of_text(example_of(features)), "here");
  EXPECT_EQ(again.at("x").to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(again.at("y").to_vector<std::int64_t>(), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(again.at("z").bytes(), 3u);
  EXPECT_THROW(parse_example(bytes_of_text("\xff\xff"), "here"), DataError);
}

TEST_F(Records, ThereAndBack) {
  const auto file = folder_ / "data.tfrecord";
  const std::vector<std::string> records{std::string(example), "", std::string(1000, 'x')};
  write_tfrecord(file, records);
  const TfrecordFile opened(file);
  ASSERT_EQ(opened.size(), 3);
  for (const std::int64_t i : {2, 0, 1}) {
    const auto record = opened.record(i);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(record.data()), record.size()),
              records[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(opened.place_of(2), file.string() + ": record 2 (byte 83)");
  EXPECT_THROW(TfrecordFile(folder_ / "none"), Unavailable);
}

/// Compressed by gzip, whatever the file is called; a record whose length begins as gzip does is none.
TEST_F(Records, OfCompressedFiles) {
  const auto plain = folder_ / "plain", file = folder_ / "data.tfrecord.gz";
  const std::vector<std::string> records{std::string(example), "", std::string(100000, 'x'), std::string(0x8b1f, 'y')};
  write_tfrecord(plain, records);
  const std::vector<std::byte> bytes = read_whole_file(plain);
  const auto compress = [&](std::span<const std::byte> part, const char* mode) {
    gzFile out = gzopen(file.c_str(), mode);
    gzwrite(out, part.data(), static_cast<unsigned>(part.size()));
    gzclose(out);
  };
  compress(std::span(bytes).first(70), "wb");
  compress(std::span(bytes).subspan(70), "ab");  // of two members
  const TfrecordFile opened(file), of_plain(plain);
  ASSERT_EQ(opened.size(), 4);
  EXPECT_EQ(opened.checksum(), of_plain.checksum());
  for (const std::int64_t i : {3, 2, 0, 1}) {
    const auto record = opened.record(i);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(record.data()), record.size()),
              records[static_cast<std::size_t>(i)]);
    EXPECT_EQ(record, of_plain.record(i));
  }
  EXPECT_EQ(parse_tfrecord(read_whole_file(file), "here").size(), 4u);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 9);
  EXPECT_THROW(TfrecordFile{file}, DataError);
  write_tfrecord(plain, std::vector<std::string>{std::string(0x8b1f, 'y')});
  EXPECT_EQ(TfrecordFile(plain).size(), 1);
}

TEST_F(Records, EveryDamageIsFound) {
  const auto file = folder_ / "data.tfrecord";
  write_tfrecord(file, std::vector<std::string>{std::string(example), "second"});
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(parse_tfrecord(bytes_of_text(whole), "f").size(), 2u);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_THROW(parse_tfrecord(bytes_of_text(damaged), "f"), DataError) << i;
    if (i != 0 && i != example.size() + 16) {
      EXPECT_THROW(parse_tfrecord(bytes_of_text(std::string_view(whole).substr(0, i)), "f"), DataError) << i;
    }
  }
  const TfrecordFile opened(file);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(20).put('?');
  EXPECT_THROW(opened.record(0), DataError);
  EXPECT_EQ(opened.record(1).size(), 6u);
}

TEST(Example, OfOtherTypesIsRefused) {
  EXPECT_THROW(example_of({{"x", Tensor::of_buffer({f64, {1}}, Buffer::allocate(8))}}), InvalidArgument);
  EXPECT_NO_THROW(example_of({{"x", floats({})}}));
}

}  // namespace
}  // namespace gradus::tfrecord_test
