/// IDX files: what is written is read, plain and gzip; what is broken is an error that says where; writing is atomic.
#include "gradus/base/rooms.h"
#include "gradus/formats/idx.h"
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include "gradus/base/error.h"
#include "gradus/formats/atomic_file.h"
#include "gradus/formats/gzip.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/test_directory.h"

namespace gradus::idx_test {
namespace {

namespace fs = std::filesystem;

std::string operator""_bytes(const char* text, std::size_t size) { return {text, size}; }

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
IdxArray parse(const std::string& bytes) { return parse_idx(bytes_of(bytes), "file.idx"); }

std::string gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, plain.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// u8 [rows, 10], each element its index.
std::string images(int rows) {
  std::string out = "\0\0\x08\x02\0\0"_bytes;
  out += static_cast<char>(rows / 256);
  out += static_cast<char>(rows % 256);
  out += "\0\0\0\x0a"_bytes;
  for (int i = 0; i < rows * 10; ++i) out += static_cast<char>(i);
  return out;
}

void expect_images(const IdxArray& array, int rows) {
  EXPECT_EQ(array.dtype, u8);
  EXPECT_EQ(array.dims, (std::vector<std::int64_t>{rows, 10}));
  ASSERT_EQ(array.data->bytes(), rows * 10);
  for (int i = 0; i < rows * 10; ++i) ASSERT_EQ(array.data->data<std::uint8_t>()[i], i % 256) << i;
}

/// The message of the error of kind E that `action` throws.
template <class E> std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) { return error.what(); } catch (const std::exception& error) {
    return std::string("another kind of error: ") + error.what();
  }
  return "nothing was thrown";
}
void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

class FilesTest : public testing::Test {
 protected:
  fs::path file(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory / name, std::ios::binary) << bytes;
    return directory / name;
  }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(directory), {}); }
  const EmptyTestDirectory own_;
  const fs::path& directory = own_.path();
};

TEST(IdxTest, ReadsEachTypeInTheOrderOfTheMachine) {
  const IdxArray i = parse("\0\0\x0c\x01\0\0\0\x02\x01\x02\x03\x04\xff\xff\xff\xfe"_bytes);
  EXPECT_EQ(i.dtype, i32);
  EXPECT_EQ(i.data->data<std::int32_t>()[0], 0x01020304);
  EXPECT_EQ(i.data->data<std::int32_t>()[1], -2);
  const IdxArray s = parse("\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe"_bytes);
  EXPECT_EQ(s.dtype, i16);
  EXPECT_EQ(s.data->data<std::int16_t>()[0], 0x0102);
  EXPECT_EQ(s.data->data<std::int16_t>()[1], -2);
  const IdxArray f = parse("\0\0\x0d\x01\0\0\0\x01\x3f\xc0\0\0"_bytes);
  EXPECT_EQ(f.dtype, f32);
  EXPECT_EQ(f.data->data<float>()[0], 1.5f);
  const IdxArray d = parse("\0\0\x0e\x02\0\0\0\x01\0\0\0\x01\xc0\x04\0\0\0\0\0\0"_bytes);
  EXPECT_EQ(d.dtype, f64);
  EXPECT_EQ(d.data->data<double>()[0], -2.5);
}

TEST(IdxTest, GzipIsToldByItsMagic) {
  expect_images(parse(images(50)), 50);
  expect_images(parse(gzip(images(50))), 50);
}

TEST(IdxTest, GzipMembersAreOneStream) {
  const std::string plain = images(50);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{4}, std::size_t{13}, plain.size()})
    expect_images(parse(gzip(plain.substr(0, cut)) + gzip("") + gzip(plain.substr(cut))), 50);
}

TEST(IdxTest, VeryCompressibleDataGrowsAsItComes) {
  std::string zeros = "\0\0\x08\x01\0\x98\x96\x80"_bytes;  // 10,000,000
  zeros.resize(zeros.size() + 10'000'000);
  const IdxArray array = parse(gzip(zeros));
  ASSERT_EQ(array.data->bytes(), 10'000'000);
  EXPECT_EQ(std::memcmp(array.data->data(), zeros.data() + 8, 10'000'000), 0);
}

TEST(IdxTest, GzipIsNotBelievedToBecomeAnything) {
  const auto stream_of_gzip = [](const std::string& bytes) {
    return gunzip_if_compressed(stream_of(bytes_of(bytes), "file.gz"));
  };
  std::string much = "\x1f\x8b";
  much.resize(16 << 20);
  EXPECT_LT(stream_of_gzip(much)->likely_bytes(), 160 << 20);
  const std::string plain = images(50), packed = gzip(plain);
  const std::vector<std::byte> read = read_to_end(*stream_of_gzip(packed));
  EXPECT_TRUE(std::ranges::equal(read, bytes_of(plain)));
  EXPECT_LE(read.capacity(), 2 * plain.size() + 1);
}

TEST(IdxTest, AnEmptyArrayIsAnArray) {
  const IdxArray array = parse("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"_bytes);
  EXPECT_EQ(array.dims, (std::vector<std::int64_t>{0xffffffff, 0xffffffff, 0}));
  EXPECT_EQ(array.data->bytes(), 0);
}

struct BrokenRow {
  const char* name;
  std::string bytes;
  std::string message;
};
std::ostream& operator<<(std::ostream& out, const BrokenRow& row) { return out << row.name; }

std::string damaged(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
  return bytes;
}
std::string shortened(const std::string& bytes, std::size_t by) { return bytes.substr(0, bytes.size() - by); }

const BrokenRow broken[] = {
    {"empty", "", "empty at byte 0"},
    {"short_magic", "\0\0\x08"_bytes, "truncated at byte 3: expected the magic number"},
    {"png", "\x89PNG\r\n\x1a\n"_bytes, "not an IDX file: byte 0 should begin with two zero bytes, found 137 and 80"},
    {"i24", "\0\0\x0a\x01\0\0\0\x01x"_bytes, "byte 2: element type 10 is not supported; the types read are 8 (u8)"},
    {"type", "\0\0\x42\x01\0\0\0\x01x"_bytes, "element type 66 is not supported"},
    {"rank_0", "\0\0\x08\0x"_bytes, "byte 3: expected 1 to 8 dimensions, found 0"},
    {"rank_9", "\0\0\x08\x09"_bytes + std::string(40, '\0'), "expected 1 to 8 dimensions, found 9"},
    {"short_extents", "\0\0\x08\x02\0\0\0\x01\0\0"_bytes, "truncated at byte 10: expected the extents"},
    {"overflow", "\0\0\x0e\x03"_bytes + std::string(12, '\xff'), "4294967295x4294967295x4294967295 elements of f64"},
    {"absurd", "\0\0\x08\x02\x7f\xff\xff\xff\x0f\xff\xff\xff"_bytes + std::string(88, 'x'),
     "truncated at byte 100: the header promises 2147483647x268435455 = 576460749887504385 bytes"},
    {"absurd_gzip", gzip("\0\0\x08\x02\x7f\xff\xff\xff\x0f\xff\xff\xff"_bytes + std::string(88, 'x')),
     "truncated at byte 100 of the decompressed stream"},
    {"truncated", shortened(images(50), 1),
     "file.idx: truncated at byte 511: the header promises 50x10 = 500 bytes of u8"},
    {"trailing", images(50) + "x", "bytes follow the end of the data at byte 512: the header promises 50x10"},
    {"gzip_header_only", "\x1f\x8b"_bytes, "the gzip data ends at byte 2 of the file"},
    {"gzip_cut", shortened(gzip(images(50)), 9), "in the middle of a member"},
    {"gzip_no_crc", shortened(gzip(images(50)), 8), "in the middle of a member"},
    {"gzip_truncated_within", gzip(shortened(images(50), 3)), "truncated at byte 509 of the decompressed stream"},
    {"gzip_trailing", gzip(images(50) + "xy"), "at byte 512 of the decompressed stream"},
    {"gzip_then_other", gzip(images(50)) + "more", "bytes that are not gzip follow"},
    {"gzip_second_member_cut", gzip(images(50)) + "\x1f", "in the middle of a member"},
    {"gzip_crc", damaged(gzip(images(50)), gzip(images(50)).size() - 6), "corrupt gzip data at byte"},
    {"gzip_length", damaged(gzip(images(50)), gzip(images(50)).size() - 2), "incorrect length check"},
    {"gzip_method", damaged(gzip(images(50)), 2), "corrupt gzip data"},
};

class BrokenIdxTest : public testing::TestWithParam<BrokenRow> {};

TEST_P(BrokenIdxTest, IsADataErrorThatSaysWhere) {
  reset_peak_memory();
  const std::size_t before = memory_use().peak_bytes;
  const std::string message = error_of<DataError>([] { parse(GetParam().bytes); });
  expect_contains(message, "file.idx: ");
  expect_contains(message, GetParam().message);
  EXPECT_LT(memory_use().peak_bytes, before + (std::size_t{8} << 20)) << "a header's promise was believed";
}
INSTANTIATE_TEST_SUITE_P(Rows, BrokenIdxTest, testing::ValuesIn(broken),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(IdxTest, EveryTruncationIsADataError) {
  for (const std::string& whole : {images(20), gzip(images(20))})
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_THROW(parse(whole.substr(0, size)), DataError) << size << " of " << whole.size();
}

TEST(IdxTest, AnyDamageIsReadOrADataError) {
  std::mt19937 random(7);
  for (const std::string& whole : {images(20), gzip(images(20))})
    for (int i = 0; i < 3000; ++i) {
      std::string bytes = whole;
      for (unsigned n = 1 + random() % 3; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
      try {
        const IdxArray array = parse(bytes);
        std::int64_t size = size_of(array.dtype);
        for (const std::int64_t dim : array.dims) size *= dim;
        EXPECT_EQ(array.data->bytes(), size);
      } catch (const DataError&) {}
    }
}

TEST_F(FilesTest, WrittenIsRead) {
  std::mt19937 random(3);
  const std::vector<std::vector<std::int64_t>> shapes = {{0},          {1},           {7, 5},
                                                         {3, 2, 1, 4}, {200, 28, 28}, {1, 1, 1, 1, 1, 1, 1, 2}};
  for (const DType dtype : {u8, i8, i16, i32, f32, f64})
    for (const auto& dims : shapes) {
      std::int64_t bytes = size_of(dtype);
      for (const std::int64_t dim : dims) bytes *= dim;
      const Ref<Buffer> data = Buffer::allocate(bytes);
      for (std::int64_t i = 0; i < bytes; ++i) data->data<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
      write_idx(directory / "x.idx", dtype, dims, data->data());
      const IdxArray read = read_idx(directory / "x.idx");
      EXPECT_EQ(read.dtype, dtype);
      EXPECT_EQ(read.dims, dims);
      ASSERT_EQ(read.data->bytes(), bytes);
      EXPECT_EQ(std::memcmp(read.data->data(), data->data(), static_cast<std::size_t>(bytes)), 0);
      EXPECT_EQ(entries(), 1) << "a temporary file was left";
    }
}

TEST_F(FilesTest, WritesBigEndian) {
  const std::int32_t value = 0x01020304;
  const std::int64_t dims[] = {1};
  write_idx(directory / "x", i32, dims, &value);
  std::ifstream in(directory / "x", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(bytes, "\0\0\x0c\x01\0\0\0\x01\x01\x02\x03\x04"_bytes);
}

TEST_F(FilesTest, TheNameSaysNothingAboutCompression) {
  expect_images(read_idx(file("plain.gz", images(5))), 5);
  expect_images(read_idx(file("compressed", gzip(images(5)))), 5);
}

TEST_F(FilesTest, ErrorsNameTheFile) {
  const fs::path cut = file("train-images", shortened(images(50), 2));
  expect_contains(error_of<DataError>([&] { read_idx(cut); }), cut.string() + ": truncated at byte 510");
  const fs::path missing = directory / "missing";
  expect_contains(error_of<Unavailable>([&] { read_idx(missing); }),
                  missing.string() + ": cannot be opened: No such file");
  expect_contains(error_of<Unavailable>([&] { read_idx(directory); }), directory.string() + ": is a directory");
}

TEST_F(FilesTest, WhatIdxCannotHoldIsRefused) {
  const std::int64_t data[8] = {};
  const auto write = [&](DType dtype, std::vector<std::int64_t> dims) {
    return error_of<InvalidArgument>([&] { write_idx(directory / "x", dtype, dims, data); });
  };
  expect_contains(write(i64, {1}), "given i64; cast it first");
  expect_contains(write(boolean, {1}), "given bool");
  expect_contains(write(u8, {}), "expected 1 to 8 dimensions, given 0");
  expect_contains(write(u8, std::vector<std::int64_t>(9, 1)), "given 9");
  expect_contains(write(u8, {std::int64_t{1} << 32}), "an extent of 4294967296");
  expect_contains(write(u8, {-1}), "an extent of -1");
  expect_contains(write(f64, {0xffffffff, 0xffffffff}), "too many");
  EXPECT_EQ(entries(), 0);
}

TEST_F(FilesTest, WritingWhereItCannotBe) {
  const std::int64_t dims[] = {1};
  const auto write = [&](const fs::path& path) {
    return error_of<Unavailable>([&] { write_idx(path, u8, dims, "x"); });
  };
  expect_contains(write(directory / "missing" / "x"),
                  (directory / "missing" / "x").string() + ": cannot be written: No such");
  fs::create_directory(directory / "folder");
  expect_contains(write(directory / "folder"), "cannot be put in place: Is a directory");
  EXPECT_EQ(entries(), 1);
  if (geteuid() == 0) return;  // may write everywhere
  fs::permissions(directory, fs::perms::owner_read | fs::perms::owner_exec);
  expect_contains(write(directory / "x"), "Permission denied");
  fs::permissions(directory, fs::perms::owner_all);
}

/// The system's bound on the size of files stands for a full disk.
TEST_F(FilesTest, AFullDiskLeavesTheOldFile) {
  const fs::path target = file("x.idx", images(3));
  const Ref<Buffer> data = Buffer::allocate(1 << 20);
  std::memset(data->data(), 1, 1 << 20);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100'000, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::int64_t dims[] = {1 << 20};
  const std::string message = error_of<ResourceExhausted>([&] { write_idx(target, u8, dims, data->data()); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  expect_contains(message, target.string() + ": cannot be written: File too large");
  expect_images(read_idx(target), 3);
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, LinksAndPipesStay) {
  const fs::path link = directory / "link", target = directory / "target", pipe = directory / "pipe";
  std::ofstream(target) << "old";
  fs::create_symlink("target", link);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string came;
  std::thread reader([&] { std::getline(std::ifstream(pipe), came); });
  for (const fs::path& file : {link, pipe}) {
    AtomicFile out(file);
    out.write("new\n");
    out.commit();
  }
  reader.join();
  EXPECT_EQ(came, "new");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(link));
  std::string written;
  std::getline(std::ifstream(target), written);
  EXPECT_EQ(written, "new");
}

TEST_F(FilesTest, AnUncommittedFileNeverAppears) {
  {
    AtomicFile out(directory / "x");
    out.write("half");
    EXPECT_FALSE(fs::exists(directory / "x"));
  }
  EXPECT_EQ(entries(), 0);
  AtomicFile out(directory / "x");
  out.write("whole");
  out.commit();
  EXPECT_EQ(fs::file_size(directory / "x"), 5u);
  EXPECT_EQ(entries(), 1);
}

TEST_F(FilesTest, TensorsComeBack) {
  for (const Tensor& x : {constant({{1.5, -2.0}, {0.0, 4.0}}), constant({1.0, 2.0}, f64), constant({7, -7}),
                          cast(constant({1, 255}), u8), zeros({0, 3})}) {
    save_idx(directory / "x.idx", x);
    EXPECT_TRUE(bitwise_equal(load_idx(directory / "x.idx"), x)) << x.spec();
  }
  EXPECT_THROW(load_idx(directory / "none"), Unavailable);
}

}  // namespace
}  // namespace gradus::idx_test
