/// Text that reads the same whatever locale the caller has, and that no terminal obeys.
#include <gtest/gtest.h>
#include <iomanip>
#include <locale>
#include "gradus/base/error.h"
#include "tests/grouped_numbers.h"

namespace gradus::text_test {
namespace {

class Grouped : public GroupedNumbers {
 protected:
  std::string do_truename() const override { return "wahr"; }
};

/// Another global locale while it lives.
class GlobalLocale {
 public:
  GlobalLocale() : before_(std::locale::global(std::locale(std::locale::classic(), new Grouped))) {}
  ~GlobalLocale() { std::locale::global(before_); }
  GlobalLocale(const GlobalLocale&) = delete;

 private:
  std::locale before_;
};

TEST(Text, DoesNotDependOnTheLocale) {
  const GlobalLocale other;
  EXPECT_EQ(text(12345, ' ', 1234567.5, ' ', std::boolalpha, true, ' ', std::hex, 123456),
            "12345 1.23457e+06 true 1e240");
  EXPECT_EQ(text(std::fixed, std::setprecision(2), 12345.5), "12345.50");
  TextStream out;
  out << std::int64_t{-9'000'000'000} << ' ' << 0.25F;
  EXPECT_EQ(out.str(), "-9000000000 0.25");
  try {
    require(false, "expected ", 12345, ", got ", 0.5);
  } catch (const Error& error) { EXPECT_STREQ(error.what(), "expected 12345, got 0.5"); }
}

TEST(Text, ControlCharactersAreShown) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable(std::string_view("\0\r\x7f", 3)), "\\x00\\x0d\\x7f");
  EXPECT_EQ(printable("line\nline\tend"), "line\nline\tend");
  EXPECT_EQ(printable("line\nline\tend", true), "line\\x0aline\\x09end");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xc3\xa4 \xc2\xa0"),
            "\\x9b31m \xc3\xa4 \xc2\xa0");  // an 8-bit CSI, ä, a hard blank
  EXPECT_EQ(printable("\xc2"), "\xc2");
  EXPECT_EQ(printable(printable("\x1b\n", true), true), "\\x1b\\x0a");
}

/// Whatever brings a name into a message: no error lets it reach a terminal.
TEST(Text, NoErrorHoldsControlCharacters) {
  const std::string name = "x\x1b]0;title\x07";
  EXPECT_STREQ(InvalidArgument("no `" + name + "`").what(), "no `x\\x1b]0;title\\x07`");
  EXPECT_STREQ(DataError(name.c_str()).what(), "x\\x1b]0;title\\x07");
  try {
    require<Unavailable>(false, name);
  } catch (const Unavailable& error) { EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos); }
}

}  // namespace
}  // namespace gradus::text_test
