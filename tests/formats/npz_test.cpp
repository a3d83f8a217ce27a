/// Archives that NumPy wrote are read, and no damage passes or harms.
#include "gradus/formats/npz.h"
#include <gtest/gtest.h>
#include <cstring>
#include <fstream>
#include "gradus/formats/npy.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"
#include "tests/formats/deflated_archive.h"
#include "tests/test_directory.h"

namespace gradus::npz_test {
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

TEST_F(Npz, NamesOfPartsStandOnce) {
  const std::string header = "\x93NUMPY\x01" + std::string(1, '\0') + "\x3a" + std::string(1, '\0') +
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (1, ), }\n";
  const std::string plain = header + std::string(4, '\0');
  expect_says(error_of<DataError>([&] { parse(deflated_archive("x.npy", plain, 2)); }), "two parts are called `x.npy`");
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
}  // namespace gradus::npz_test
