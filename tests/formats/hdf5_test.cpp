/// Files of HDF5 come back as they were written, and no damage passes or harms. What Keras writes is read in
/// tests/train/keras_files_test.cpp, what is written here is read by Keras in the longer tests.
#include "gradus/base/rooms.h"
#include "gradus/formats/hdf5.h"
#include <gtest/gtest.h>
#include <cstring>
#include <map>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::hdf5_test {
namespace {

NamedArray array_of(const std::string& name, const Tensor& x) { return {name, x.spec(), Ref<Buffer>(&x.observed())}; }

std::string file_of(const std::vector<NamedArray>& arrays) {
  std::string file = hdf5_header(arrays);
  for (const NamedArray& array : arrays)
    file.append(array.data->data<const char>(), static_cast<std::size_t>(bytes_of(array.spec)));
  return file;
}

std::vector<NamedArray> parse(const std::string& file) { return parse_hdf5(std::as_bytes(std::span(file)), "it"); }

std::map<std::string, Tensor> by_name(const std::vector<NamedArray>& arrays) {
  std::map<std::string, Tensor> named;
  for (const NamedArray& array : arrays) named.emplace(array.name, Tensor::of_buffer(array.spec, array.data));
  return named;
}

TEST(Hdf5, ComesBackAsItWas) {
  std::vector<NamedArray> arrays{array_of("scalar", constant(2.5)), array_of("none", zeros({0, 3}))};
  for (const DType t : {f64, f32, f16, i64, i32, i16, i8, u8, u16, u32, u64})
    arrays.push_back(array_of(text("layers/", t, "/vars/0"), cast(reshape(range(6), {2, 3}), t)));
  for (int i = 0; i < 700; ++i) arrays.push_back(array_of(text("many/", i), cast(constant(i), f32)));  // three levels
  const auto read = by_name(parse(file_of(arrays)));
  ASSERT_EQ(read.size(), arrays.size());
  for (const NamedArray& array : arrays)
    EXPECT_TRUE(bitwise_equal(read.at(array.name), Tensor::of_buffer(array.spec, array.data))) << array.name;
  EXPECT_TRUE(parse(file_of({})).empty());
}

TEST(Hdf5, WhatCannotBeWritten) {
  const Tensor x = constant(1);
  const auto refused = [](const std::vector<NamedArray>& arrays) {
    return error_of<InvalidArgument>([&] { hdf5_header(arrays); });
  };
  expect_says(refused({array_of("a", x), array_of("a", x)}), "`a` is there already");
  expect_says(refused({array_of("a", x), array_of("a/b", x)}), "`a/b` is no path");
  expect_says(refused({array_of("a/b", x), array_of("a", x)}), "`a` is there already");
  expect_says(refused({array_of("a//b", x)}), "a part is empty");
  expect_says(refused({array_of("", x)}), "a part is empty");
  expect_says(refused({array_of("a", cast(x, bf16))}), "bf16, which the format lacks");
}

TEST(Hdf5, GroupsAreNestedSoFarAtMost) {
  const auto file_of_depth = [](int groups) {
    std::string path = "a";
    for (int i = 0; i < groups; ++i) path += "/a";
    return file_of({array_of(path, constant(1.5))});
  };
  EXPECT_EQ(parse(file_of_depth(62)).size(), 1u);
  for (const int groups : {64, 1000, 100'000})
    expect_says(error_of<InvalidArgument>([&] { file_of_depth(groups); }), "groups are nested deeper than 62");
  // A file whose innermost group is the outermost again: as deep as one likes.
  std::string file = file_of_depth(3);
  const std::string root = file.substr(24 + 40, 8);
  for (std::size_t place = file.rfind(std::string("SNOD")) + 8; place + 16 < file.size(); place += 8)
    if (file.compare(place, 8, root) != 0) {
      std::string bad = file;
      bad.replace(place, 8, root);
      try {
        parse(bad);
      } catch (const DataError&) {}
    }
}

TEST(Hdf5, NamesWhatIsWrong) {
  expect_says(error_of<DataError>([] { parse("no"); }), "it: byte 0: it is no HDF5 file");
  std::string file = file_of({array_of("a", constant(1.5))});
  const std::size_t type = file.find(std::string("\x11\x20\x1f\0\4", 5));
  ASSERT_NE(type, std::string::npos);
  file[type] = 0x13;  // a text
  expect_says(error_of<DataError>([&] { parse(file); }), text("it: byte ", type, ": array `a` is of class 3"));
}

/// Every byte changed and every length: an error, or the same values where the byte has no meaning.
TEST(Hdf5, NoDamageHarms) {
  const std::string good = file_of({array_of("g/a", constant({1.5, 2.5})), array_of("g/b", range(3))});
  const auto harmless = [](const std::string& bad) {
    try {
      parse(bad);
    } catch (const DataError&) {}
  };
  for (std::size_t place = 0; place < good.size(); ++place)
    for (const int flip : {1, 2, 0x10, 0x80, 0xff}) {
      std::string bad = good;
      bad[place] = static_cast<char>(bad[place] ^ flip);
      harmless(bad);
    }
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_THROW(parse(good.substr(0, length)), DataError) << length;
}

}  // namespace
}  // namespace gradus::hdf5_test
