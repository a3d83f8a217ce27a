/// What follows from the figures of a trial: seconds first, then bytes.
#include "gradus/advice/verdict.h"
#include <gtest/gtest.h>
#include "gradus/tensor/memory.h"

namespace gradus::verdict_test {
namespace {

/// Steps of 1 s, and so much of them with the change.
Comparison of_ratio(double ratio, int pairs = Comparison::fewest) {
  Comparison times;
  for (int pair = 0; pair < pairs; ++pair) times.add(1, ratio);
  return times;
}

constexpr std::size_t few = 5 * GiB, many = 10 * GiB;
const LeverKind kind{.name = "lever"};

struct Case {
  const char* what;
  bool is_in_use;
  double ratio;
  std::size_t before, after;  // bytes
  double difference;          // of losses
  Verdict verdict;
  bool adopts;
  const char* says;
};

const std::vector<Case> cases{
    {"faster", false, 0.5, few, few, 0, Verdict::worth_it, true, "a step takes 50 % less: 0.500 to 0.500"},
    {"faster, with more bytes", false, 0.5, few, many, 0, Verdict::worth_it, true,
     "; it takes 10.00 GiB in place of 5.00 GiB"},
    {"faster, other losses", false, 0.5, few, few, 0.01, Verdict::not_worth_it, false, "it is another training"},
    {"hardly faster", false, 0.99, few, few, 0, Verdict::not_worth_it, false, "it gains less than 2.0 %"},
    {"as fast", false, 1, few, few, 0, Verdict::not_worth_it, false, "a gain lies within the interval"},
    {"as fast, with fewer bytes", false, 1, many, few, 0, Verdict::worth_it, true,
     "it takes 5.00 GiB in place of 10.00 GiB at the same speed"},
    {"as fast, with hardly fewer bytes", false, 1, many, many - many / 20, 0, Verdict::not_worth_it, false,
     "a gain lies within the interval"},
    {"as fast, with fewer bytes, other losses", false, 1, many, few, 0.01, Verdict::not_worth_it, false,
     "it is another training"},
    {"slower", false, 1.2, few, few, 0, Verdict::not_worth_it, false, "a step takes 20 % longer: 1.200 to 1.200"},
    {"slower, with fewer bytes", false, 1.2, many, few, 0, Verdict::not_worth_it, false, ": for when memory is short"},
    {"in use, slower without", true, 2, few, few, 0, Verdict::worth_it, false,
     "in use; without it a step takes 2.00 of the time"},
    {"in use, faster without", true, 0.5, few, few, 0, Verdict::not_worth_it, true,
     "in use; without it a step takes 50 % less: "},
    {"in use, faster without, with more bytes", true, 0.5, few, many, 0, Verdict::not_worth_it, true,
     "50 % less and 10.00 GiB in place of 5.00 GiB"},
    {"in use, faster without, other losses", true, 0.5, few, few, 0.01, Verdict::not_worth_it, false, "50 % less"},
    {"in use, more bytes without", true, 1, few, many, 0, Verdict::worth_it, false,
     "in use; without it a step takes as long and 10.00 GiB in place of 5.00 GiB"},
    {"in use, the same without", true, 1, few, few, 0, Verdict::not_worth_it, false, "in use, and it may stay"},
};

TEST(Judge, SecondsThenBytes) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    const Evidence shown{of_ratio(each.ratio), each.before, each.after, each.difference};
    const Judgement judged = judge(kind, {.setting = {}, .change = "a change"}, each.is_in_use, shown);
    EXPECT_EQ(judged.row.verdict, each.verdict);
    EXPECT_EQ(judged.row.worth_it, each.verdict == Verdict::worth_it);
    EXPECT_EQ(judged.adopts, each.adopts);
    EXPECT_NE(judged.row.reason.find(each.says), std::string::npos) << judged.row.reason;
    const bool is_short = std::string_view(each.says).find("short") != std::string_view::npos;
    EXPECT_EQ(judged.row.reason.find("short") != std::string::npos, is_short) << judged.row.reason;
    EXPECT_EQ(judged.row.change, "a change");
    // Before is without it, after is with it, also where the trial was without it.
    EXPECT_DOUBLE_EQ(judged.row.seconds_before, each.is_in_use ? each.ratio : 1);
    EXPECT_DOUBLE_EQ(judged.row.seconds_after, each.is_in_use ? 1 : each.ratio);
    EXPECT_EQ(judged.row.bytes_before, each.is_in_use ? each.after : each.before);
    EXPECT_EQ(judged.row.bytes_after, each.is_in_use ? each.before : each.after);
    EXPECT_DOUBLE_EQ(judged.row.ratio_low, each.is_in_use ? 1 / each.ratio : each.ratio);
    EXPECT_DOUBLE_EQ(judged.row.ratio_high, each.is_in_use ? 1 / each.ratio : each.ratio);
  }
}

TEST(Judge, FewPairsAreUndecided) {
  for (const bool is_in_use : {false, true}) {
    const Judgement judged = judge(kind, {}, is_in_use, {of_ratio(0.5, Comparison::fewest - 1), many, few, 0});
    EXPECT_EQ(judged.row.verdict, Verdict::undecided);
    EXPECT_FALSE(judged.row.worth_it || judged.adopts);
    EXPECT_EQ(judged.row.reason, "undecided, 7 pairs: the time was over");
    EXPECT_EQ(judged.row.bytes_before, is_in_use ? few : many);
  }
}

TEST(Judge, ALeverMayAskForMore) {
  const LeverKind larger{.name = "batch size", .least_gain = 0.1};
  EXPECT_FALSE(judge(larger, {}, false, {of_ratio(0.95), few, few, 0}).adopts);
  EXPECT_TRUE(judge(kind, {}, false, {of_ratio(0.95), few, few, 0}).adopts);
}

TEST(Judge, TwoTriesOneOnTopOfTheOtherAreOneRow) {
  const Judgement first = judge(kind, {.setting = {}, .change = "twice"}, false, {of_ratio(0.5), many, few, 1e-4});
  Comparison again;
  for (int pair = 0; pair < 16; ++pair) again.add(0.6, 0.3);
  const Judgement then = judge(kind, {.setting = {}, .change = "four times"}, false, {again, few, few, 2e-4});
  const Lever both = joined(first.row, then.row);
  EXPECT_EQ(both.change, "four times");
  EXPECT_DOUBLE_EQ(both.seconds_before, 1);
  EXPECT_DOUBLE_EQ(both.seconds_after, 0.25);  // the second try began at 0.6 s, since the machine was slower then
  EXPECT_DOUBLE_EQ(both.ratio_high, 0.25);
  EXPECT_EQ(both.bytes_before, many);
  EXPECT_EQ(both.pairs, 24);
  EXPECT_EQ(both.max_relative_difference, 2e-4);
  EXPECT_NE(both.reason.find("a step takes 75 % less: 0.250 to 0.250 of the time in 24 pairs"), std::string::npos)
      << both.reason;
}

}  // namespace
}  // namespace gradus::verdict_test
