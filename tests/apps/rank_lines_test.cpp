/// How the output of a rank becomes lines.
#include "apps/gradus/rank_lines.h"
#include <gtest/gtest.h>

namespace gradus::command::rank_lines_test {
namespace {

using namespace std::chrono_literals;
using Time = RankLines::Clock::time_point;

/// Whole, then byte by byte: where a read ends makes no difference.
std::string all_of(std::string_view prefix, std::string_view bytes) {
  RankLines whole{std::string(prefix)}, parts{std::string(prefix)};
  std::string out = whole.take(bytes, Time());
  out += whole.finish();
  std::string again;
  for (const char& byte : bytes) again += parts.take({&byte, 1}, Time());
  again += parts.finish();
  EXPECT_EQ(out, again) << bytes;
  return out;
}

TEST(RankLines, HaveAPrefixAndAnEnd) {
  EXPECT_EQ(all_of("[3] ", ""), "");
  EXPECT_EQ(all_of("[3] ", "a\n\nb\n"), "[3] a\n[3] \n[3] b\n");
  EXPECT_EQ(all_of("[3] ", "a\nb"), "[3] a\n[3] b\n");
  EXPECT_EQ(all_of("[3] ", "a\r\n\r\nb\r\n"), "[3] a\n[3] \n[3] b\n");
  EXPECT_EQ(all_of("[3] ", std::string_view("\0\xff\n", 3)), std::string("[3] \0\xff\n", 7));
}

TEST(RankLines, OfOneRankStayAsTheyAre) {
  EXPECT_EQ(all_of("", "a\n\nb\r\n10%\r20%\r"), "a\n\nb\r\n10%\r20%\r");
  EXPECT_EQ(all_of("", "a\nb"), "a\nb\n");
  RankLines lines("");
  EXPECT_EQ(lines.take("10%\r20", Time()), "10%\r");
}

TEST(RankLines, ThatAreRewrittenArePassedOnNowAndThen) {
  RankLines lines("[0] ");
  const Time start{};
  EXPECT_EQ(lines.take("10%\r11%\r12%", start), "[0] 10%\n");
  EXPECT_EQ(lines.take("\r20%\r", start + 500ms), "");
  EXPECT_EQ(lines.take("30%\r31%\r", start + RankLines::shortest_interval), "[0] 30%\n");
  EXPECT_EQ(lines.take("\r99%\r100%\n", start + 1100ms), "[0] 100%\n");
  EXPECT_EQ(lines.take("1\r2\r", start + 1200ms), "");
  EXPECT_EQ(lines.finish(), "[0] 2\n");
  EXPECT_EQ(lines.finish(), "");
  EXPECT_EQ(all_of("[0] ", "10%\r20%\r\nb\n"), "[0] 10%\n[0] 20%\n[0] b\n");
  EXPECT_EQ(all_of("[0] ", "\r10%\r\r\n\n"), "[0] 10%\n[0] \n");
}

TEST(RankLines, ThatAreTooLongBecomeSeveral) {
  RankLines lines("[0] ");
  const std::string part(RankLines::longest, 'x');
  EXPECT_EQ(lines.take(part + part + "yz\n", Time()), "[0] " + part + "\n[0] " + part + "\n[0] yz\n");
}

}  // namespace
}  // namespace gradus::command::rank_lines_test
