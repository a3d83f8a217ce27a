/// Hyperparameters: what is listed, what is drawn, and what is refused.
#include "gradus/train/search_space.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <set>
#include "tests/errors.h"

namespace gradus::search_space_test {
namespace {

SearchSpace mixed() {
  return SearchSpace()
      .log_uniform("rate", 1e-4, 1e-1, {.points = 4})
      .choice("optimizer", {"adam", "sgd"})
      .integers("units", 16, 64, {.step = 16})
      .boolean("nesterov");
}

std::vector<double> numbers(const std::vector<SearchSpace::Values>& drawn, std::size_t p) {
  std::vector<double> result;
  for (const auto& values : drawn) result.push_back(std::get<double>(values[p].second));
  return result;
}

TEST(SearchSpace, AGridIsEveryCombinationTheLastOneFastest) {
  const auto grid = mixed().grid();
  ASSERT_EQ(grid.size(), 4u * 2 * 4 * 2);
  EXPECT_EQ(std::set(grid.begin(), grid.end()).size(), grid.size());
  EXPECT_EQ(grid[0], (SearchSpace::Values{
                         {"rate", 1e-4}, {"optimizer", "adam"}, {"units", std::int64_t{16}}, {"nesterov", false}}));
  EXPECT_EQ(grid[1][3].second, SearchValue(true));
  EXPECT_EQ(grid[2][2].second, SearchValue(std::int64_t{32}));
  EXPECT_EQ(grid.back()[0].second, SearchValue(1e-1)) << "both ends exactly";
  EXPECT_NEAR(std::get<double>(grid[16][0].second), 1e-3, 1e-15);
}

TEST(SearchSpace, DrawsFollowFromTheSeed) {
  const SearchSpace space = mixed();
  EXPECT_EQ(space.drawn(30, 7), space.drawn(30, 7));
  EXPECT_NE(space.drawn(30, 7), space.drawn(30, 8));
  const auto few = space.drawn(10, 7), many = space.drawn(30, 7);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin())) << "more trials begin with the same ones";
}

/// Kolmogorov and Smirnov's distance to the distribution that is asked for, below its 0.1 % quantile.
TEST(SearchSpace, DrawsAreSpreadAsTheyShall) {
  const auto space = SearchSpace().uniform("a", -3, 5).log_uniform("b", 1e-5, 10);
  const auto drawn = space.drawn(2000, 1);
  std::vector<double> a = numbers(drawn, 0), b = numbers(drawn, 1);
  for (double& value : a) value = (value + 3) / 8;
  for (double& value : b) value = (std::log10(value) + 5) / 6;
  double product = 0;
  for (std::size_t i = 0; i < a.size(); ++i) product += (a[i] - 0.5) * (b[i] - 0.5);
  EXPECT_LT(std::abs(product / 2000 * 12), 0.08) << "one does not follow from the other";
  for (std::vector<double>* shares : {&a, &b}) {
    std::ranges::sort(*shares);
    EXPECT_GE(shares->front(), 0);
    EXPECT_LE(shares->back(), 1);
    for (std::size_t i = 0; i < shares->size(); ++i)
      ASSERT_LT(std::abs((*shares)[i] - static_cast<double>(i) / 2000), 1.95 / std::sqrt(2000));
  }
}

TEST(SearchSpace, EveryValueThatCanBeCountedIsDrawnOnce) {
  const auto space = SearchSpace().integers("n", -2, 7, {.step = 3}).choice("c", {0.5, 2.0, 8.0});
  EXPECT_EQ(space.count(), 12);
  for (const std::int64_t trials : {3, 5, 7, 12, 100}) {
    const auto drawn = space.drawn(trials, 5);
    EXPECT_EQ(drawn.size(), static_cast<std::size_t>(std::min<std::int64_t>(trials, 12)));
    EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), drawn.size());
  }
  const auto all = space.drawn(12, 5);
  const auto grid = space.grid();
  EXPECT_EQ(std::set(all.begin(), all.end()), std::set(grid.begin(), grid.end()));
  EXPECT_EQ(mixed().count(), std::nullopt);
  EXPECT_EQ(SearchSpace().integers("n", 0, 1LL << 52).integers("m", 0, 1LL << 52).count(), std::nullopt);
}

TEST(SearchSpace, ATrialGivesItsValuesByNameAndType) {
  const SearchTrial trial{.values = mixed().grid()[1]};
  EXPECT_EQ(trial.number("rate"), 1e-4);
  EXPECT_EQ(trial.text("optimizer"), "adam");
  EXPECT_EQ(trial.integer("units"), 16);
  EXPECT_EQ(trial.number("units"), 16) << "an integer is a number";
  EXPECT_TRUE(trial.flag("nesterov"));
  expect_says(error_of<InvalidArgument>([&] { (void)trial.number("rat"); }), "rate");
  expect_says(error_of<InvalidArgument>([&] { (void)trial.integer("rate"); }), "an integer");
  expect_says(error_of<InvalidArgument>([&] { (void)trial.number("optimizer"); }), "a text, adam");
  expect_says(error_of<InvalidArgument>([&] { (void)SearchTrial().flag("a"); }), "empty");
}

TEST(SearchSpace, WhatCannotBeIsRefused) {
  const double nan = std::nan(""), infinite = HUGE_VAL;
  EXPECT_THROW(SearchSpace().uniform("a", 1, 1), InvalidArgument);
  EXPECT_THROW(SearchSpace().uniform("a", nan, 1), InvalidArgument);
  EXPECT_THROW(SearchSpace().uniform("a", 0, infinite), InvalidArgument);
  EXPECT_THROW(SearchSpace().uniform("a", -1.7e308, 1.7e308), InvalidArgument);
  EXPECT_THROW(SearchSpace().uniform("a", 0, 1, {.points = 1}), InvalidArgument);
  EXPECT_THROW(SearchSpace().log_uniform("a", 0, 1), InvalidArgument);
  EXPECT_THROW(SearchSpace().log_uniform("a", nan, 1), InvalidArgument);
  EXPECT_THROW(SearchSpace().integers("a", 3, 2), InvalidArgument);
  EXPECT_THROW(SearchSpace().integers("a", 0, 3, {.step = 0}), InvalidArgument);
  EXPECT_THROW(SearchSpace().integers("a", 0, INT64_MAX), InvalidArgument);
  EXPECT_THROW(SearchSpace().choice("a", {}), InvalidArgument);
  EXPECT_THROW(SearchSpace().choice("a", {1.0, 1.0}), InvalidArgument);
  EXPECT_THROW(SearchSpace().choice("a", {1.0, nan}), InvalidArgument);
  EXPECT_THROW(SearchSpace().boolean(""), InvalidArgument);
  EXPECT_THROW(SearchSpace().boolean("a").boolean("a"), InvalidArgument);
  expect_says(error_of([] { (void)SearchSpace().integers("a", 1, 2000).integers("b", 1, 2000).grid(); }),
              "random_search");
  EXPECT_EQ(SearchSpace().integers("a", 5, 5).drawn(9, 0).size(), 1u);
  EXPECT_EQ(SearchSpace().integers("a", -(1LL << 53), 1LL << 53).drawn(50, 0).size(), 50u);
}

}  // namespace
}  // namespace gradus::search_space_test
