/// Archives that NumPy wrote are read, and no damage passes or harms.
#include "gradus/formats/npz.h"
#include <gtest/gtest.h>
#include <zlib.h>
#include <cstring>
#include <fstream>
#include "gradus/formats/npy.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus {
namespace {

class Npz : public ::testing::Test {
 protected:
  std::string written(const NamedTensors& arrays) const {
    save_npz(file, arrays);
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const EmptyTestDirectory directory;
  const std::filesystem::path file = directory.path() / "arrays.npz";
};

NamedTensors parse(const std::string& bytes) { return parse_npz(std::as_bytes(std::span(bytes)), "it"); }

/// A zip file of one deflated array without zip64, as zip tools and np.savez_compressed of small arrays have it. Its
/// directory names it so many `times`.
std::string deflated_archive(const std::string& name, const std::string& plain, std::uint16_t times = 1) {
  std::string packed(plain.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  std::string out;
  const auto put = [&](auto... values) { (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...); };
  using u16_t = std::uint16_t;
  using u32_t = std::uint32_t;
  const auto crc = static_cast<u32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(plain.data()), plain.size()));
  const auto size = static_cast<u32_t>(packed.size()), full = static_cast<u32_t>(plain.size());
  const auto length = static_cast<u16_t>(name.size());
  put(u32_t{0x04034b50}, u16_t{20}, u16_t{0}, u16_t{8}, u32_t{0}, crc, size, full, length, u16_t{0});
  out += name + packed;
  const auto directory = static_cast<u32_t>(out.size());
  for (int i = 0; i < times; ++i) {
    put(u32_t{0x02014b50}, u16_t{20}, u16_t{20}, u16_t{0}, u16_t{8}, u32_t{0}, crc, size, full, length, u16_t{0},
        u16_t{0}, u16_t{0}, u16_t{0}, u32_t{0}, u32_t{0});
    out += name;
  }
  const auto bytes = static_cast<u32_t>(out.size()) - directory;
  put(u32_t{0x06054b50}, u16_t{0}, u16_t{0}, times, times, bytes, directory, u16_t{5});
  return out + "a zip";
}

TEST_F(Npz, ComesBackAsItWas) {
  const NamedTensors arrays{{"a/b", reshape(range(6), {2, 3})}, {"c", constant({1.5, 2.5})}, {"d", zeros({0, 3})}};
  const NamedTensors read = parse(written(arrays));
  ASSERT_EQ(read.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read[i].first, arrays[i].first);
    EXPECT_TRUE(bitwise_equal(read[i].second, arrays[i].second));
  }
  EXPECT_EQ(written(arrays), written(arrays)) << "the same bytes each time";
  EXPECT_EQ(parse(written({})).size(), 0u);
  EXPECT_THROW(save_npz(file, {{"a", range(2)}, {"a", range(3)}}), InvalidArgument);
  EXPECT_THROW(save_npz(file, {{"", range(2)}}), InvalidArgument);
  EXPECT_THROW(load_npz(file.string() + ".not_there"), Unavailable);
}

TEST_F(Npz, Deflated) {
  const Tensor x = full({300}, 7.0);
  std::string plain = npy_header(x.spec());
  plain.append(reinterpret_cast<const char*>(x.span<float>().data()), 1200);
  const std::string archive = deflated_archive("x.npy", plain);
  const NamedTensors read = parse(archive);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].first, "x");
  EXPECT_TRUE(bitwise_equal(read[0].second, x));
  expect_says(error_of<DataError>([&] { parse(deflated_archive("x.npy", "nothing")); }), "array `x.npy`");
}

TEST_F(Npz, PartsDoNotOverlap) {
  const Tensor x = range(300, f32);
  std::string plain = npy_header(x.spec());
  plain.append(reinterpret_cast<const char*>(x.span<float>().data()), 1200);
  EXPECT_EQ(parse(deflated_archive("x.npy", plain)).size(), 1u);
  expect_says(error_of<DataError>([&] { parse(deflated_archive("x.npy", plain, 4)); }), "its parts overlap");
}

/// Every byte changed and every length: an error, or the very same values where the byte has no meaning.
TEST_F(Npz, NoDamagePasses) {
  const NamedTensors arrays{{"a", range(5)}, {"bc", constant({1.5, 2.5})}};
  const Tensor x = full({300}, 7.0);
  std::string plain = npy_header(x.spec());
  plain.append(reinterpret_cast<const char*>(x.span<float>().data()), 1200);
  for (const std::string& good : {written(arrays), deflated_archive("x.npy", plain)}) {
    const NamedTensors expected = parse(good);
    const auto passes = [&](const std::string& bad) {
      try {
        const NamedTensors read = parse(bad);
        for (std::size_t i = 0; i < read.size(); ++i) EXPECT_TRUE(bitwise_equal(read[i].second, expected.at(i).second));
        return true;
      } catch (const DataError& error) {
        EXPECT_NE(std::string(error.what()).find(": byte "), std::string::npos) << error.what();
        return false;
      }
    };
    for (std::size_t place = 0; place < good.size(); ++place)
      for (const int flip : {1, 0x80, 0xff}) {
        std::string bad = good;
        bad[place] = static_cast<char>(bad[place] ^ flip);
        passes(bad);
      }
    for (std::size_t length = 0; length + 5 < good.size(); ++length)
      EXPECT_FALSE(passes(good.substr(0, length))) << length;
  }
}

}  // namespace
}  // namespace gradus
