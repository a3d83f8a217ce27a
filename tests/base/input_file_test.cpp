/// Files are read whole or in part; what is no regular file is refused at once, with its name and what it is.
#include "gradus/base/input_file.h"
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cstring>
#include <fstream>
#include "gradus/base/error.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::input_file_test {
namespace {

namespace fs = std::filesystem;

class InputFileTest : public testing::Test {
 protected:
  fs::path write(const char* name, const std::string& contents) const {
    std::ofstream(directory_.path() / name, std::ios::binary) << contents;
    return directory_.path() / name;
  }
  /// What each way of reading says of `file`: all the same.
  std::string said_of(const fs::path& file) const {
    const std::string said = error_of<Unavailable>([&] { read_text_file(file); });
    EXPECT_EQ(error_of<Unavailable>([&] { read_whole_file(file); }), said);
    EXPECT_EQ(error_of<Unavailable>([&] { read_part_of_file(file, 0, 1); }), said);
    return said;
  }
  const EmptyTestDirectory directory_;
};

TEST_F(InputFileTest, ReadsAllOrAPart) {
  const fs::path file = write("file", "0123456789"), empty = write("empty", "");
  EXPECT_EQ(read_text_file(file), "0123456789");
  EXPECT_EQ(read_whole_file(file).size(), 10u);
  EXPECT_EQ(read_part_of_file(file, 3, 4), "3456");
  EXPECT_EQ(read_part_of_file(file, 10, 0), "");
  EXPECT_EQ(read_text_file(empty), "");
  expect_says(error_of<Unavailable>([&] { read_part_of_file(file, 8, 4); }),
              file.string() + ": has 10 bytes, 4 from byte 8 on are needed");
  InputFile in(file);
  std::byte three[3], all[16];
  EXPECT_EQ(in.read(three), 3u);
  EXPECT_EQ(in.read(all), 7u);
  EXPECT_EQ(in.read(all), 0u);
  EXPECT_EQ(in.size(), 10);
}

TEST_F(InputFileTest, WhatDoesNotKnowItsSizeIsReadToItsEnd) {
  EXPECT_EQ(fs::file_size("/proc/self/status"), 0u);
  EXPECT_NE(read_text_file("/proc/self/status").find("Pid:"), std::string::npos);
  EXPECT_GT(read_whole_file("/proc/self/maps").size(), 4096u);
}

TEST_F(InputFileTest, OnlyRegularFiles) {
  const fs::path pipe = directory_.path() / "pipe", link = directory_.path() / "link", socket = directory_.path() / "s";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);  // nobody writes: who waited for that would wait for ever
  fs::create_symlink(pipe, link);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(said_of(pipe), pipe.string() + ": is a pipe; expected a regular file");
  EXPECT_EQ(said_of(link), link.string() + ": is a pipe; expected a regular file");
  EXPECT_EQ(said_of(directory_), directory_.path().string() + ": is a directory; expected a regular file");
  EXPECT_EQ(said_of("/dev/zero"), "/dev/zero: is a device; expected a regular file");
  EXPECT_EQ(said_of("/dev/null"), "/dev/null: is a device; expected a regular file");
  expect_says(said_of(socket), socket.string() + ": cannot be opened: ");
  expect_says(said_of(directory_.path() / "none"), "none: cannot be opened: No such file");
  close(listener);
}

TEST_F(InputFileTest, WhatCannotBeReadSaysWhere) {
  // The memory of this process: its first page is nobody's, so reading it is an error of input and output.
  expect_says(error_of<Unavailable>([&] { read_text_file("/proc/self/mem"); }),
              "/proc/self/mem: cannot be read at byte 0: Input/output error");
}

TEST_F(InputFileTest, WhatDoesNotFitInMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "operator new of a sanitizer ends the process where it would throw";
#endif
  const fs::path file = write("huge", "");
  std::error_code problem;
  fs::resize_file(file, std::uintmax_t{1} << 43, problem);  // with a hole: 8 TiB that are not there
  if (problem) GTEST_SKIP() << "the file system has no files of this size: " << problem.message();
  expect_says(error_of<ResourceExhausted>([&] { read_part_of_file(file, 0, std::int64_t{1} << 62); }),
              file.string() + ": no memory for ");
}

}  // namespace
}  // namespace gradus::input_file_test
