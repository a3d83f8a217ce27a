/// NumPy's files: what is written comes back, both orders and byte orders are read, and anything else is a DataError.
#include "gradus/formats/npy.h"
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::npy_test {
namespace {

class Npy : public testing::Test {
 protected:
  std::filesystem::path scratch(const char* name) const { return directory_.path() / name; }
  const EmptyTestDirectory directory_;
};

std::string bytes_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file of version 1.0 with this header, and bytes behind it.
std::string npy(std::string header, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

Tensor parsed(const std::string& bytes) { return parse_npy(std::as_bytes(std::span(bytes)), "array.npy"); }

TEST_F(Npy, EveryDtypeComesBack) {
  for (const DType dtype : all_dtypes) {
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{5}, Shape{2, 3, 4}}) {
      const Tensor x = cast(reshape(range(shape.size(), i64), shape), dtype);
      save_npy(scratch("x.npy"), x);
      EXPECT_TRUE(bitwise_equal(load_npy(scratch("x.npy")), x)) << x.spec();
    }
  }
}

// Byte for byte what numpy.save writes.
TEST_F(Npy, WritesWhatNumPyWrites) {
  save_npy(scratch("y.npy"), constant({{1.0, 2.0}}));
  const std::string file = bytes_of_file(scratch("y.npy"));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  header.resize(117, ' ');
  header += '\n';
  EXPECT_EQ(file, npy(header, std::string("\0\0\x80\x3f\0\0\0\x40", 8)));
  EXPECT_EQ((file.size() - 8) % 64, 0u);
}

TEST_F(Npy, FortranOrderAndBigEndian) {
  const Tensor x =
      parsed(npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '|u1'}", std::string("\0\1\2\3\4\5", 6)));
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 2, 4, 1, 3, 5}));
  const Tensor y = parsed(npy("{'descr':'>i4','fortran_order':False,'shape':(1,)}", std::string("\0\0\1\2", 4)));
  EXPECT_EQ(y.item(), 258);
}

TEST_F(Npy, MapsWhatItWouldRead) {
  for (const DType dtype : all_dtypes)
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{5}, Shape{2, 3, 4}, Shape{1024, 4}}) {
      const Tensor x = cast(reshape(range(shape.size(), i64), shape), dtype);
      save_npy(scratch("x.npy"), x);
      const Tensor mapped = map_npy(scratch("x.npy"));
      EXPECT_TRUE(bitwise_equal(mapped, x)) << x.spec();
      std::filesystem::remove(scratch("x.npy"));
      EXPECT_TRUE(bitwise_equal(mapped, x)) << "a file that is removed stays until nobody uses it";
    }
}

TEST_F(Npy, MappedElementsAreNotWritten) {
  const Tensor x = reshape(cast(range(4096), f32), {64, 64});
  save_npy(scratch("x.npy"), x);
  const std::string before = bytes_of_file(scratch("x.npy"));
  Tensor y = map_npy(scratch("x.npy"));
  for (int i = 0; i < 5; ++i) y = y * 2 + 1;
  EXPECT_EQ(y.to_vector<float>()[1], 63);
  EXPECT_TRUE(bitwise_equal(matmul(map_npy(scratch("x.npy")), y), matmul(x, y)));
  EXPECT_EQ(bytes_of_file(scratch("x.npy")), before);
}

TEST_F(Npy, MapsNoArrayThatHasToBeChanged) {
  const auto write = [&](const std::string& bytes) {
    std::ofstream(scratch("bad.npy"), std::ios::binary) << bytes;
    return [this] { map_npy(scratch("bad.npy")); };
  };
  const std::string six("\0\1\2\3\4\5", 6);
  expect_error<InvalidArgument>(write(npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '|u1'}", six)),
                                {"map_npy: ", "column by column (fortran_order); load_npy reads it"});
  expect_error<InvalidArgument>(write(npy("{'descr':'>i2','fortran_order':False,'shape':(3,)}", six)),
                                {"in big endian"});
  expect_error<InvalidArgument>(write(npy("{'descr':'<i2','fortran_order':False,'shape':(3,)} ", six)),
                                {"at a byte that is no multiple of an element"});
  expect_error<DataError>(write(npy("{'descr':'<i2','fortran_order':False,'shape':(4,)}", six)),
                          {"needs 8 bytes, 6 follow"});
  expect_error<DataError>(write(npy("{'descr':'|b1','fortran_order':False,'shape':(6,)}", six)),
                          {"a bool is neither 0 nor 1"});
  expect_error<DataError>(write(""), {"no NumPy file"});
  expect_error<DataError>(write("\x93NUMPY"), {"the file ends in its header"});
  EXPECT_THROW(map_npy(scratch("absent.npy")), Unavailable);
  EXPECT_THROW(map_npy(directory_.path()), Unavailable);
}

TEST_F(Npy, BrokenFilesAreDataErrors) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}";
  const std::pair<std::string, const char*> broken[] = {
      {"", "no NumPy file"},
      {"\x93NUMPY", ": byte 6: the file ends in its header"},
      {"\x93numpy and more", "no NumPy file"},
      {npy(good, "abc"), "needs 4 bytes, 3 follow"},
      {npy(good, "abcde"), "needs 4 bytes, 5 follow"},
      {npy(good, "").substr(0, 30), "the header claims"},
      {npy("[]", ""), "no dictionary"},
      {npy("{'descr': '<f4'}", ""), "must have descr"},
      {npy("{'descr': '<c8', 'fortran_order': False, 'shape': ()}", ""), "`<c8` is not supported"},
      {npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "\x80\x03"), "pad_sequences"},
      {npy("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", ""), "True or False"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ""), "no size"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", ""), "array.npy"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "abcd"), "more than 8 dimensions"},
      {npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\x02"), "neither 0 nor 1"},
      {npy("{'descr", ""), "not closed"}};
  for (const auto& [bytes, why] : broken) {
    try {
      parsed(bytes);
      ADD_FAILURE() << why;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(": byte "), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(load_npy(scratch("absent.npy")), Unavailable);
}

}  // namespace
}  // namespace gradus::npy_test
