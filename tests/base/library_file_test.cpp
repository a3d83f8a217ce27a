/// Shared libraries cut off at any length: their headers show it, without the loader.
#include "gradus/base/library_file.h"
#include <dlfcn.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include "gradus/base/input_file.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::library_file_test {
namespace {

namespace fs = std::filesystem;

TEST(LibraryFiles, ThatAreCutOffAreToldAtAnyLength) {
  Dl_info here{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&dlopen), &here), 0);  // the C library, or the loader
  const std::string whole = read_text_file(fs::canonical(here.dli_fname));
  const EmptyTestDirectory folder;
  const fs::path cut = folder.path() / "cut.so";
  const auto problem_of = [&](std::size_t length) {
    std::ofstream(cut, std::ios::binary) << whole.substr(0, length);
    return why_cut_off(cut);
  };
  EXPECT_EQ(problem_of(whole.size()), "");
  EXPECT_EQ(problem_of(0), "") << "no library, which the loader says";
  bool is_whole = true;  // while only bytes after the last segment, which are not mapped, are cut off
  for (const double part : {0.99, 0.9, 0.75, 0.5, 0.25, 0.1, 0.01}) {
    const auto length = static_cast<std::size_t>(part * static_cast<double>(whole.size()));
    const std::string problem = problem_of(std::max<std::size_t>(length, 64));
    is_whole = is_whole && problem.empty();
    EXPECT_TRUE(part > 0.5 || !is_whole) << part;
    if (!problem.empty()) expect_says(problem, "cut.so is cut off: it has ");
  }
}

TEST(LibraryFiles, ThatAreNoneAreLeftToTheLoader) {
  const EmptyTestDirectory folder;
  const fs::path file = folder.path() / "text.so";
  EXPECT_EQ(why_cut_off(file), "");
  std::ofstream(file) << "no library, but long enough for a header that nobody has written here, as it seems";
  EXPECT_EQ(why_cut_off(file), "");
  EXPECT_EQ(why_cut_off(folder.path()), "");
}

}  // namespace
}  // namespace gradus::library_file_test
