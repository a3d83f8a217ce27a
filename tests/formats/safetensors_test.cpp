/// Arrays of every dtype through a safetensors file.
#include "gradus/formats/safetensors.h"
#include "tests/test_directory.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <filesystem>

namespace gradus {
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

}  // namespace
}  // namespace gradus
