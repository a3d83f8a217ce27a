/// Intervals of medians against chances that are counted another way, and what follows from them.
#include "gradus/advice/comparison.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace gradus::comparison_test {
namespace {

/// The chance that of `pairs` fair coins at most `outside` show heads, or at most as many tails.
double chance_outside(int pairs, int outside) {
  double chance = 0;
  for (int heads = 0; heads <= outside; ++heads)
    chance += std::exp(std::lgamma(pairs + 1) - std::lgamma(heads + 1) - std::lgamma(pairs - heads + 1) -
                       pairs * std::log(2.0));
  return 2 * chance;
}

TEST(Comparison, TheIntervalIsTheShortestThatHoldsOftenEnough) {
  for (int pairs = 1; pairs <= 64; ++pairs)
    for (const double risk : {0.05, 0.01}) {
      const int outside = outside_of_interval(pairs, risk);
      EXPECT_TRUE(outside < 0 || chance_outside(pairs, outside) <= risk) << pairs;
      EXPECT_TRUE(outside + 1 >= pairs / 2 || chance_outside(pairs, outside + 1) > risk) << pairs;
    }
  EXPECT_EQ(outside_of_interval(Comparison::fewest - 1, Comparison::risk), -1);
  EXPECT_EQ(outside_of_interval(Comparison::fewest, Comparison::risk), 0);
}

Comparison of_ratios(const std::vector<double>& ratios) {
  Comparison times;
  double before = 1;
  for (const double ratio : ratios) {
    times.add(before, before * ratio);
    before *= 1.1;  // the machine gets slower, which ratios of pairs do not see
  }
  return times;
}

TEST(Comparison, FewPairsSayNothing) {
  const Comparison times = of_ratios(std::vector<double>(7, 0.5));
  EXPECT_EQ(times.low(), 0);
  EXPECT_TRUE(std::isinf(times.high()));
  EXPECT_FALSE(times.gains(0.02));
  EXPECT_FALSE(times.is_slower());
  EXPECT_FALSE(times.is_decided(0.02));
}

TEST(Comparison, WhatIsClear) {
  const Comparison faster = of_ratios(std::vector<double>(8, 0.5)), slower = of_ratios(std::vector<double>(8, 1.5)),
                   equal = of_ratios(std::vector<double>(8, 1.0));
  EXPECT_TRUE(faster.gains(0.02) && faster.is_decided(0.02) && !faster.is_slower());
  EXPECT_TRUE(slower.is_slower() && slower.is_decided(0.02) && !slower.gains(0.02));
  EXPECT_TRUE(equal.is_decided(0.02) && !equal.gains(0.02) && !equal.is_slower());
  EXPECT_TRUE(equal.does_not_gain(0.02));
  EXPECT_FALSE(faster.does_not_gain(0.02));
}

TEST(Comparison, OnePairThatWasDisturbedDecidesNothingAmongMany) {
  std::vector<double> ratios(24, 0.8);
  ratios[3] = 50;
  ratios[17] = 0.001;
  const Comparison times = of_ratios(ratios);
  EXPECT_NEAR(times.low(), 0.8, 1e-12);
  EXPECT_NEAR(times.high(), 0.8, 1e-12);
  EXPECT_TRUE(times.gains(0.1));
}

/// Skewed times, as those of a machine that others use too.
TEST(Comparison, WhereNothingChangesASeldomGainIsFound) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> time(0, 0.5);
  int found = 0;
  constexpr int trials = 4000;
  for (int trial = 0; trial < trials; ++trial) {
    Comparison times;
    for (int pair = 0; pair < 8; ++pair) times.add(time(random), time(random));
    found += times.gains(0.02);
  }
  EXPECT_LT(found, trials / 100);
}

TEST(Comparison, MediansOfBothSides) {
  Comparison times;
  for (const double seconds : {3.0, 1.0, 2.0, 10.0}) times.add(seconds, 2 * seconds);
  EXPECT_EQ(times.median_before(), 2.5);
  EXPECT_EQ(times.median_after(), 5);
  EXPECT_EQ(times.ratio(), 2);
  EXPECT_EQ(times.pairs(), 4);
}

}  // namespace
}  // namespace gradus::comparison_test
