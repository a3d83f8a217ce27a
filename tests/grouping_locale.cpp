/// With GRADUS_TEST_LOCALE=grouping in the environment the tests run as within a program whose user writes 12345.5 as
/// 12.345,5: std::locale::global for streams, setlocale for the functions of C. Neither needs a locale that the machine
/// has: the first is a facet, the second a file of glibc's that is written here.
#include <gtest/gtest.h>
#include <unistd.h>
#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <locale>
#include <sstream>
#include <string>
#include "tests/grouped_numbers.h"

namespace {

bool is_wanted() {
  const char* wanted = std::getenv("GRADUS_TEST_LOCALE");
  return wanted && std::strcmp(wanted, "grouping") == 0;
}

/// LC_NUMERIC of a compiled locale: a mark, how many fields, where they lie, and the fields.
std::string compiled_numeric() {
  using namespace std::string_literals;
  const std::string fields[] = {",\0"s,     ".\0"s,     "\3\0"s,  // decimal point, separator, sizes of groups
                                ",\0\0\0"s, ".\0\0\0"s,           // the first two as wide characters
                                "UTF-8\0"s};
  std::uint32_t head[2 + std::size(fields)] = {0x20031115u ^ LC_NUMERIC, std::size(fields)};
  std::string contents;
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    contents.resize((contents.size() + 3) / 4 * 4);
    head[2 + i] = static_cast<std::uint32_t>(sizeof head + contents.size());
    contents += fields[i];
  }
  return std::string(reinterpret_cast<const char*>(head), sizeof head) + contents;
}

void install_for_c() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("gradus_locale_" + std::to_string(::getpid()));
  fs::create_directories(folder / "grouping");
  std::ofstream(folder / "grouping" / "LC_NUMERIC", std::ios::binary) << compiled_numeric();
  ::setenv("LOCPATH", folder.c_str(), 1);
  std::setlocale(LC_NUMERIC, "grouping");
  ::unsetenv("LOCPATH");
  fs::remove_all(folder);
}

/// Before main, and before the first stream of a test is made.
const bool is_installed = [] {
  if (!is_wanted()) return false;
  install_for_c();
  std::locale::global(std::locale(std::locale::classic(), new gradus::GroupedNumbers));
  return true;
}();

TEST(GroupingLocale, IsWhatTheTestsRunIn) {
  std::ostringstream out;
  out << 12345 << ' ' << 0.5;
  EXPECT_EQ(out.str(), is_installed ? "12.345 0,5" : "12345 0.5");
  EXPECT_STREQ(std::localeconv()->decimal_point, is_installed ? "," : ".");
  EXPECT_EQ(std::strtod(is_installed ? "0,5" : "0.5", nullptr), 0.5);
}

}  // namespace
