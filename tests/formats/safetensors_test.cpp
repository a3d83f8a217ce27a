/// Arrays of every dtype through a safetensors file, and files that are none.
#include "gradus/base/rooms.h"
#include "gradus/formats/safetensors.h"
#include "tests/errors.h"
#include "tests/test_directory.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <filesystem>

namespace gradus::safetensors_test {
namespace {

TEST(Safetensors, EveryDtypeComesBackAsItWas) {
  std::vector<NamedArray> arrays;
  for (const DType t : all_dtypes) {
    const Spec spec{t, {2, 3}};
    NamedArray array{.name = std::string(name_of(t)), .spec = spec, .data = Buffer::allocate(bytes_of(spec))};
    for (std::int64_t i = 0; i < bytes_of(spec); ++i)
      array.data->data<std::uint8_t>()[i] = static_cast<std::uint8_t>(t == boolean ? i % 2 : 17 * i + 3);
    arrays.push_back(std::move(array));
  }
  const EmptyTestDirectory directory;
  const auto file = directory.path() / "every_dtype.safetensors";
  write_safetensors(file, arrays);
  const std::vector<NamedArray> read = read_safetensors(file);
  ASSERT_EQ(read.size(), arrays.size());
  for (const NamedArray& array : arrays) {
    const auto found = std::ranges::find(read, array.name, &NamedArray::name);
    ASSERT_NE(found, read.end()) << array.name;
    EXPECT_EQ(found->spec, array.spec);
    EXPECT_EQ(std::memcmp(found->data->data(), array.data->data(), static_cast<std::size_t>(bytes_of(array.spec))), 0);
  }
}

std::string file_of(const std::string& header, const std::string& contents = {}) {
  const std::uint64_t size = header.size();
  std::string file(8, 0);
  std::memcpy(file.data(), &size, 8);
  return file + header + contents;
}
std::vector<NamedArray> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "the_file");
}

TEST(Safetensors, MistakesAreNamed) {
  const auto with = [](const std::string& fields) { return file_of(R"({"a": {)" + fields + "}}", std::string(8, 2)); };
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"1234567", "7 bytes are too few"},
      {file_of("{}").replace(0, 1, "\x03"), "byte 0: the header claims 3 bytes, but 2 follow"},
      {file_of("[1]"), "byte 8: the header is no JSON object"},
      {file_of("{"), "the header, from byte 8 on: byte 1: this is no JSON: "},
      {file_of("{\"a\": " + std::string(100'000, '[')), "nested more than 200 deep"},
      {file_of(
           R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})",
           "12"),
       "the key `a` stands twice"},
      {file_of(R"({"a":{"dtype":"I8","shape":[1],"dtype":"U8","data_offsets":[0,1]}})", "1"),
       "the key `dtype` stands twice"},
      {file_of(
           R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[2],"data_offsets":[1,3]}})",
           "123"),
       "array `b` begins at byte 1 of the contents, within the array before, which ends at 2"},
      {file_of(
           R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"I8","shape":[1],"data_offsets":[2,3]}})",
           "123"),
       "bytes 1 to 2 of the contents, before array `b`, belong to no array"},
      {file_of(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})", "12"), "bytes 0 to 1 of the contents"},
      {file_of(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "12"),
       "bytes 1 to 2 of the contents, at the end of the file, belong to no array"},
      {file_of(R"({"a": 1})"), "array `a`: expected dtype, shape and two data_offsets"},
      {with(R"("dtype": "F8", "shape": [8], "data_offsets": [0, 8])"), "array `a` has dtype F8"},
      {with(R"("dtype": "I8", "shape": [-8], "data_offsets": [0, 8])"), "a dimension is no size"},
      {with(R"("dtype": "I8", "shape": [1,1,1,1,1,1,1,1,8], "data_offsets": [0, 8])"), "more than eight dimensions"},
      {with(R"("dtype": "I8", "shape": [8], "data_offsets": [0, 9])"), "its bytes lie outside the file"},
      {with(R"("dtype": "I8", "shape": [8], "data_offsets": [8, 0])"), "its bytes lie outside the file"},
      {with(R"("dtype": "I8", "shape": [7], "data_offsets": [0, 8])"), "its shape and its data_offsets disagree"},
      {with(R"("dtype": "F64", "shape": [4611686018427387903, 4], "data_offsets": [0, 8])"), "array `a`: "},
      {with(R"("dtype": "BOOL", "shape": [8], "data_offsets": [0, 8])"), "a bool is neither 0 nor 1"},
      {with(R"("dtype": "I8", "shape": [8], "data_offsets": [0, 8]},
               "b": {"dtype": "I8", "shape": [1], "data_offsets": [3, 4])"),
       "array `b` begins at byte 3 of the contents"}};
  for (const auto& [file, problem] : mistakes) {
    const std::string message = error_of<DataError>([&] { parse(file); });
    expect_says(message, "the_file: ");
    expect_says(message, problem);
  }
}

TEST(Safetensors, NoDamageHarms) {
  const std::string whole = file_of(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I8","shape":[],"data_offsets":[8,9]}})",
      std::string(9, 1));
  EXPECT_EQ(parse(whole).size(), 2u);
  const auto read_or_refuse = [](const std::string& file) {
    try {
      for (const NamedArray& array : parse(file)) EXPECT_LE(bytes_of(array.spec), 9);
    } catch (const DataError&) {}
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    read_or_refuse(whole.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
      read_or_refuse(damaged);
    }
  }
}

}  // namespace
}  // namespace gradus::safetensors_test
