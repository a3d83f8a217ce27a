/// The files of an export: all are written, or none, whichever call of the system fails; places that cannot be right
/// are refused before the step is traced.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <fstream>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/errors.h"
#include "tests/export/loaded_object.h"
#include "tests/train/failing_calls.h"

namespace gradus::files_test {
namespace {

namespace fs = std::filesystem;

/// A number for the bytes of every file, by name; 0 for what is no file.
std::map<std::string, std::size_t> files_in(const fs::path& folder) {
  std::map<std::string, std::size_t> all;
  for (const auto& entry : fs::directory_iterator(folder))
    all[entry.path().filename().string()] =
        entry.is_regular_file() ? std::hash<std::string>()(read_text_file(entry.path())) : 0;
  return all;
}

void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }

/// Every write, fsync and rename of an export fails once, where there are files of an earlier export and where there
/// are none.
TEST(ExportFiles, EveryCallMayFail) {
  using Kind = FailingCalls::Kind;
  const auto export_to = [](const fs::path& folder, double factor) {
    Variable scale(full({2}, factor), "scale");
    const auto f = function([&](Tensor x) { return reduce_sum(x * scale.value() * factor); });
    f.export_object(folder / "step", {{f32, {2}}},
                    {.weights = folder / "step.weights", .declarations = text("/* ", factor, " */\n")});
  };
  for (const bool is_new : {true, false})
    for (const Kind kind : {Kind::write, Kind::fsync, Kind::rename}) {
      int calls = 1;
      for (int number = 0; number < calls; ++number) {
        SCOPED_TRACE(text(is_new, " ", static_cast<int>(kind), " ", number));
        const fs::path folder = export_folder();
        if (!is_new) export_to(folder, 2);
        const auto before = files_in(folder);
        EXPECT_EQ(before.size(), is_new ? 0U : 3U);
        {
          const FailingCalls failing({.kind = kind, .number = number, .reason = number % 2 ? EIO : ENOSPC});
          if (number % 2 == 0) EXPECT_THROW(export_to(folder, 3), ResourceExhausted);
          else if (kind == Kind::write)
            EXPECT_THROW(export_to(folder, 3), Error);  // the linker's files are written, too
          else EXPECT_THROW(export_to(folder, 3), Unavailable);
        }
        EXPECT_EQ(files_in(folder), before);
        const FailingCalls counting({});
        export_to(folder, 3);
        calls = FailingCalls::calls(kind);
        const auto after = files_in(folder);
        EXPECT_EQ(after.size(), 3U);
        for (const char* name : {"step.o", "step.h", "step.weights"})
          EXPECT_TRUE(is_new || after.at(name) != before.at(name)) << name;
      }
      EXPECT_GE(calls, 3);
    }
}

/// A step that must not be traced.
class ExportPlaces : public testing::Test {
 protected:
  const fs::path folder = export_folder();
  bool is_traced = false;

  template <class E> void refused(const ObjectOptions& options, const std::string& words, const char* stem = "net") {
    const auto f = function([&](Tensor x) {
      is_traced = true;
      return x * 2;
    });
    const std::vector<Spec> specs{{f32, {2}}};
    const auto before = files_in(folder);
    expect_says(error_of<E>([&] { f.export_object(folder / stem, specs, options); }), words);
    expect_says(error_of<E>([&] { export_objects(folder / stem, {{"f", f, specs}}, options); }), words);
    EXPECT_FALSE(is_traced);
    EXPECT_EQ(files_in(folder), before);
  }
  void weights_refused(const fs::path& weights, const std::string& words) {
    SCOPED_TRACE(weights);
    refused<InvalidArgument>({.weights = weights}, words);
  }
};

TEST_F(ExportPlaces, WeightsAreAFileOfTheirOwn) {
  const std::string words = "is the place of the object or of its header";
  fs::create_directory(folder / "sub");
  fs::create_directory_symlink(folder, folder / "same");
  for (const bool is_there : {false, true}) {
    if (is_there) {
      write(folder / "net.o", "an earlier object"), write(folder / "net.h", "an earlier header");
      fs::create_symlink("net.o", folder / "alias");
      weights_refused(folder / "alias", words);
    }
    for (const char* name : {"net.o", "net.h"}) {
      weights_refused(folder / name, words);
      weights_refused(folder / "." / name, words);
      weights_refused(folder / "sub" / ".." / name, words);
      weights_refused(folder / "same" / name, words);
    }
  }
}

TEST_F(ExportPlaces, RelativePathsAreCompared) {
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  const auto f = function([](Tensor x) { return x * 2; });
  for (const char* weights : {"net.o", "./net.o"})
    for (const char* stem : {"net", "./net"})
      EXPECT_THROW(f.export_object(stem, {{f32, {2}}}, {.weights = weights}), InvalidArgument)
          << weights << " " << stem;
  EXPECT_THROW(f.export_object("net", {{f32, {2}}}, {.weights = folder / "net.h"}), InvalidArgument);
  EXPECT_TRUE(fs::is_empty(folder));
  f.export_object("net", {{f32, {2}}}, {.weights = "net.weights"});
  EXPECT_EQ(files_in(folder).size(), 3U);
  fs::current_path(before);
}

TEST_F(ExportPlaces, WeightsHaveTheNameOfAFile) {
  weights_refused(folder / "none" / "", "name a file in it, such as net.weights");
  fs::create_directory(folder / "sub");
  weights_refused(folder / "sub" / "", "name a file in it, such as net.weights");
  for (const fs::path& place : {folder / "sub", folder / ".", folder / "sub" / ".."})
    weights_refused(place, "is a directory");
}

TEST_F(ExportPlaces, DirectoriesAreNotReplaced) {
  fs::create_directory(folder / "net.o");
  refused<InvalidArgument>({}, "net.o is a directory");
  fs::create_directory(folder / "other.h");
  refused<InvalidArgument>({}, "other.h is a directory", "other");
}

TEST_F(ExportPlaces, ObjectAndHeaderAreTwoFiles) {
  write(folder / "net.h", "an earlier header");
  fs::create_symlink("net.h", folder / "net.o");
  refused<InvalidArgument>({}, "are one file");
}

TEST_F(ExportPlaces, FoldersHaveToExist) {
  refused<Unavailable>({.weights = folder / "none" / "net.weights"}, "cannot be written");
  refused<Unavailable>({}, "cannot be written", "none/net");
  write(folder / "file", "");
  refused<Unavailable>({}, "cannot be written", "file/net");
}

/// A link keeps pointing where it does, and a pipe stays one: it is written directly.
TEST_F(ExportPlaces, LinksAndPipesStay) {
  fs::create_directory(folder / "sub");
  write(folder / "sub" / "kept", "earlier weights");
  fs::create_symlink("sub/kept", folder / "net.weights");
  Variable scale(full({2}, 3), "scale");
  const auto f = function([&](Tensor x) { return reduce_sum(x * scale.value()); });
  f.export_object(folder / "net", {{f32, {2}}}, {.weights = folder / "net.weights"});
  EXPECT_TRUE(fs::is_symlink(folder / "net.weights"));
  const std::string weights = read_text_file(folder / "sub" / "kept");
  EXPECT_GT(weights.size(), 64U);
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_CLOEXEC);  // its buffer is larger than these weights
  f.export_object(folder / "net", {{f32, {2}}}, {.weights = pipe});
  std::string came(weights.size(), ' ');
  ASSERT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(read(reader, came.data(), came.size()), std::ssize(weights));
  EXPECT_EQ(came, weights);
  close(reader);
}

}  // namespace
}  // namespace gradus::files_test
