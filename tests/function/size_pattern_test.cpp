/// Patterns of numbers: what varies, what follows from it.
#include "gradus/function/size_pattern.h"
#include <gtest/gtest.h>
#include <random>
#include "gradus/tensor/dimension.h"

namespace gradus::size_pattern_test {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

std::vector<std::string> written(const SizePattern& pattern) {
  std::vector<std::string> all;
  for (const std::int64_t d : pattern.dimensions()) all.push_back(dimension::to_text(d));
  return all;
}

TEST(SizePattern, ConstantsSymbolsAndWhatFollowsFromThem) {
  const Lists lists{
      {4, 10, 10, 1989, 40, 7, 100, 0}, {4, 12, 12, 1987, 48, 2, 144, 0}, {4, 11, 11, 1988, 44, 9, 121, 0}};
  const auto pattern = SizePattern::fit(lists);
  ASSERT_TRUE(pattern);
  EXPECT_EQ(written(*pattern), (std::vector<std::string>{"4", "s0", "s0", "-s0+1999", "4*s0", "s1", "s0*s0", "0"}));
  EXPECT_EQ(pattern->match(lists[1]), (std::vector<std::int64_t>{12, 2}));
  EXPECT_EQ(pattern->match(std::vector<std::int64_t>{4, 1, 1, 1998, 4, 5, 1, 0}), (std::vector<std::int64_t>{1, 5}));
  EXPECT_FALSE(pattern->match(std::vector<std::int64_t>{4, 1, 2, 1998, 4, 5, 1, 0}));
  EXPECT_FALSE(pattern->match(std::vector<std::int64_t>{5, 1, 1, 1998, 4, 5, 1, 0}));
  EXPECT_FALSE(pattern->match(std::vector<std::int64_t>{4, 1, 1}));
}

TEST(SizePattern, TooManySymbolsAreNoPattern) {
  std::mt19937_64 random(3);
  Lists lists(6);
  for (auto& list : lists)
    for (std::size_t i = 0; i < 2 * SizePattern::most_symbols; ++i)
      list.push_back(static_cast<std::int64_t>(random() >> 20));
  EXPECT_FALSE(SizePattern::fit(lists));
}

/// Whatever it is fitted to, it has: the dimensions at the values of its symbols are the numbers.
TEST(SizePattern, HoldsForWhatItWasFittedTo) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    Lists lists(2 + random() % 5);
    const std::size_t length = 1 + random() % 12;
    const std::int64_t spread = 1 + static_cast<std::int64_t>(random() % 9);
    for (auto& list : lists) {
      const auto n = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(spread));
      for (std::size_t i = 0; i < length; ++i) {
        const auto free = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(spread));
        list.push_back(i % 4 == 0 ? n : i % 4 == 1 ? 3 * n + 2 : i % 4 == 2 ? 50 - n : free);
      }
    }
    const auto pattern = SizePattern::fit(lists);
    ASSERT_TRUE(pattern);
    for (const auto& list : lists) {
      const auto symbols = pattern->match(list);
      ASSERT_TRUE(symbols);
      const std::vector<std::int64_t> dimensions = pattern->dimensions();
      for (std::size_t i = 0; i < length; ++i) EXPECT_EQ(dimension::evaluate(dimensions[i], *symbols), list[i]);
    }
  }
}

}  // namespace
}  // namespace gradus::size_pattern_test
