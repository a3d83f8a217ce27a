/// The cause of a failure among the processes of `gradus launch`, from the launcher's knowledge of them.
#include "apps/gradus/rank_fates.h"
#include <gtest/gtest.h>
#include "apps/gradus/stopped_ranks.h"
#include "gradus/base/error.h"

namespace gradus::command::rank_fates_test {
namespace {

using namespace std::chrono_literals;
using enum RankState;

std::string name_of(int process) { return text("rank ", process); }

RankFate lives(RankState state, int said = 0) { return {.state = state, .why = "w", .said = said}; }
RankFate exits(int status, RankState state, int ended, int said = 0) {
  return {.lives = false, .status = status, .state = state, .why = "w", .ended = ended, .said = said};
}
RankFate killed(int signal, RankState state, int ended) {
  return {.lives = false, .signal = signal, .state = state, .ended = ended};
}
RankFate stopped(RankFate fate) {
  fate.is_stopped = true;
  return fate;
}

struct Row {
  const char* name;
  std::vector<RankFate> fates;
  std::chrono::milliseconds since;
  std::string says;  // empty: not decided yet
};

TEST(RankFates, TheCauseIsTheFirstThatFailedByItself) {
  const Row rows[] = {
      {"none", {lives(together), lives(together), exits(0, left, 1)}, 0s, ""},
      {"a program that reports nothing", {lives(unknown), exits(3, unknown, 1)}, 0s, "rank 1 ended with exit code 3"},
      {"the followers were quicker",
       {exits(3, followed, 3, 2), exits(3, failed, 4, 1), exits(3, followed, 5, 2)},
       0s,
       "rank 1 ended with exit code 3"},
      {"it has words to say", {exits(3, followed, 3, 2), lives(failed, 1)}, 2s, ""},
      {"it does not end", {exits(3, followed, 3, 2), lives(failed, 1)}, 6s, "rank 1 has failed and does not end: w"},
      {"it ended with 0",
       {exits(3, followed, 3, 2), exits(0, failed, 4, 1)},
       0s,
       "rank 1 ended with exit code 0 after a failure: w"},
      {"two failed by themselves",
       {exits(3, failed, 5, 4), exits(4, failed, 6, 3)},
       0s,
       "rank 1 ended with exit code 4"},
      {"killed", {exits(3, followed, 3, 2), killed(9, together, 4)}, 0s, "rank 1 was killed by signal 9 (Killed)"},
      {"killed before another one failed",
       {exits(3, failed, 5, 4), killed(11, together, 1)},
       0s,
       "rank 1 was killed by signal 11 (Segmentation fault)"},
      {"a follower that aborts is none", {killed(6, followed, 3), lives(together)}, 500ms, ""},
      {"ended early",
       {exits(3, followed, 4, 3), exits(0, together, 1)},
       0s,
       "rank 1 ended with exit code 0 before its work with the others was done, and rank 0 ended with exit code 3"},
      {"never came",
       {exits(3, followed, 4, 3), exits(0, unknown, 1)},
       0s,
       "rank 1 ended with exit code 0 before it had met the others, and rank 0 ended with exit code 3"},
      {"left in order", {exits(0, left, 1, 1), exits(3, followed, 4, 3)}, 0s, "rank 1 ended with exit code 3"},
      {"stopped",
       {exits(3, followed, 4, 3), stopped(lives(together))},
       0s,
       "rank 1 is stopped (by SIGSTOP or the like), and rank 0 ended with exit code 3"},
      {"only followers, for a while", {exits(3, followed, 4, 3), lives(together)}, 900ms, ""},
      {"only followers", {exits(3, followed, 4, 3), lives(together)}, 1s, "rank 0 ended with exit code 3"},
      {"only followers, and nobody else", {exits(3, followed, 4, 3)}, 0s, "rank 0 ended with exit code 3"},
  };
  for (const Row& row : rows) EXPECT_EQ(cause(row.fates, row.since, name_of).value_or(""), row.says) << row.name;
}

TEST(RankFates, AMeetingThatOneCannotComeToAnyMoreIsInVain) {
  const auto says = [](std::vector<RankFate> fates) { return vain_meeting(fates, 3, name_of).value_or(""); };
  EXPECT_EQ(says({lives(joins), lives(together), exits(0, unknown, 1)}),
            "rank 2 ended with exit code 0 before it had met the others, and rank 0 waits to meet it");
  EXPECT_EQ(says({lives(joins), exits(0, left, 1), lives(left)}),
            "rank 1 ended with exit code 0 after it had left in order, and rank 0 waits to meet it");
  EXPECT_EQ(says({lives(joins), lives(joins), lives(unknown)}), "");
  EXPECT_EQ(says({lives(together), lives(together), exits(0, left, 1)}), "");
}

TEST(StoppedRanks, AreOverdueAloneWhileTheOthersGoOnOrHaveEnded) {
  using Clock = StoppedRanks::Clock;
  const Clock::time_point begin{1000s};
  /// The time until a rank is overdue, within 60 s, with a look every `step`.
  const auto overdue_after = [&](std::vector<RankFate> fates, std::chrono::milliseconds step) {
    StoppedRanks watch(begin);
    for (auto now = begin; now < begin + 60s; now += step)
      if (const auto found = watch.overdue(fates, 5s, now); !found.empty()) {
        EXPECT_EQ(found, std::vector{1});
        EXPECT_TRUE(watch.overdue(fates, 5s, now + step).empty());  // reported once
        return std::chrono::duration_cast<std::chrono::milliseconds>(now - begin);
      }
    return -1ms;
  };
  EXPECT_EQ(overdue_after({lives(together), stopped(lives(together))}, 200ms), 5s);
  EXPECT_EQ(overdue_after({exits(0, left, 1), stopped(lives(together))}, 200ms), 5s);
  EXPECT_EQ(overdue_after({lives(together), lives(together)}, 200ms), -1ms);
  EXPECT_EQ(overdue_after({stopped(lives(together)), stopped(lives(together))}, 200ms), -1ms);  // the whole job
  EXPECT_EQ(overdue_after({lives(together), stopped(lives(together))}, 20s), -1ms);             // the launcher, too
}

TEST(RankReports, AreReadAsTheyWereWritten) {
  const RankReport report{.process = 3, .ranks = 4, .state = failed, .why = "a \"file\"\n\xff"};
  const auto read = RankReport::parse(report.to_string());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process, 3);
  EXPECT_EQ(read->ranks, 4);
  EXPECT_EQ(read->state, failed);
  EXPECT_TRUE(read->why.starts_with("a \"file\"\n"));
  EXPECT_LT((RankReport{.why = std::string(100'000, '"')}).to_string().size(), RankReport::most_bytes);
  for (const char* none : {"", "{}", "[1]", R"({"process": "1"})", R"({"process":1,"ranks":2,"why":"","state":"x"})"})
    EXPECT_FALSE(RankReport::parse(none)) << none;
}

}  // namespace
}  // namespace gradus::command::rank_fates_test
