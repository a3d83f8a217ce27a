/// Whether small programs are run by their team or by the caller alone: what took less does, whatever disturbs some
/// runs.
#include "gradus/backend/cpu/run/team_choice.h"
#include <gtest/gtest.h>
#include <functional>

namespace gradus::team_choice_test {
namespace {

constexpr int both_ways = 32, until_again = 1 << 14;

/// Runs as it is chosen; how many of them by the team.
int run(TeamChoice& choice, int runs, const std::function<double(bool by_team, int run)>& time, bool comes = true) {
  int by_team = 0;
  for (int i = 0; i < runs; ++i) {
    const bool team = !choice.prefers_alone() && comes;
    by_team += team;
    if (choice.is_measuring()) choice.note(team, time(team, i));
    else choice.note();
  }
  return by_team;
}

TEST(TeamChoice, TakesWhatTakesLess) {
  for (const bool team_is_faster : {false, true}) {
    TeamChoice choice(2);
    EXPECT_EQ(run(choice, both_ways, [&](bool team, int) { return team == team_is_faster ? 20e3 : 30e3; }), 16);
    EXPECT_FALSE(choice.is_measuring());
    EXPECT_EQ(choice.prefers_alone(), !team_is_faster);
  }
}

TEST(TeamChoice, PrefersTheTeamWhereItMakesNoDifference) {
  TeamChoice choice(2);
  run(choice, both_ways, [](bool team, int) { return team ? 20e3 : 19.9e3; });
  EXPECT_FALSE(choice.prefers_alone());
}

TEST(TeamChoice, IsNotMisledByRunsThatWereDisturbedOrTheFirst) {
  TeamChoice choice(2);
  run(choice, both_ways, [](bool team, int run) {
    const bool disturbed = run % 16 < 4 || run % 2 == 0;
    return team ? (disturbed ? 4e6 : 20e3) : 30e3;
  });
  EXPECT_FALSE(choice.prefers_alone());
}

TEST(TeamChoice, LooksAgainAfterAWhile) {
  TeamChoice choice(2);
  double of_team = 40e3;
  const auto time = [&](bool team, int) { return team ? of_team : 30e3; };
  run(choice, both_ways, time);
  EXPECT_TRUE(choice.prefers_alone());
  of_team = 20e3;  // the cores are nearer now
  EXPECT_LE(run(choice, until_again, time), 40);
  EXPECT_FALSE(choice.prefers_alone());
  EXPECT_GT(run(choice, until_again / 2, time), until_again / 2 - 40);
}

TEST(TeamChoice, IsAloneWhereTheTeamDoesNotCome) {
  TeamChoice choice(2);
  run(choice, 200, [](bool, int) { return 20e3; }, false);
  EXPECT_FALSE(choice.is_measuring());
  EXPECT_TRUE(choice.prefers_alone());
}

}  // namespace
}  // namespace gradus::team_choice_test
