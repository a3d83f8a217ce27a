/// Dimensions that are divided with a remainder, or have a least value: values, equal forms, proofs, texts.
#include "gradus/tensor/derived_dimension.h"
#include <gtest/gtest.h>
#include <random>
#include "gradus/base/error.h"

namespace gradus::derived_dimension_test {
namespace {

const std::int64_t s0 = dimension::symbol(0), s1 = dimension::symbol(1);

std::int64_t at(std::int64_t d, std::int64_t a, std::int64_t b = 3) {
  const std::int64_t values[] = {a, b};
  return dimension::evaluate(d, values);
}

TEST(DerivedDimension, OfNumbersAreNumbers) {
  EXPECT_EQ(dimension::floor_divide(7, 2), 3);
  EXPECT_EQ(dimension::ceil_divide(7, 2), 4);
  EXPECT_EQ(dimension::modulo(7, 4), 3);
  EXPECT_EQ(dimension::modulo(dimension::of_number(-3), 5), 2);
  EXPECT_EQ(dimension::floor_divide(dimension::of_number(-3), 2), dimension::of_number(-2));
  EXPECT_EQ(dimension::maximum(dimension::of_number(-3), 0), 0);
  EXPECT_EQ(dimension::maximum(3, 5), 5);
  EXPECT_EQ(dimension::minimum(3, 5), 3);
  EXPECT_EQ(dimension::minimum(dimension::of_number(-3), 5), dimension::of_number(-3));
}

/// Of random expressions: the value of what is made of symbols is what is made of their values.
TEST(DerivedDimension, EvaluatesToWhatItsValuesGive) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 3000; ++round) {
    const std::int64_t values[] = {below(41), 1 + below(40)};
    std::int64_t d = dimension::of_number(below(9) - 4), value = dimension::evaluate(d, values);
    std::string steps = dimension::to_text(d);
    for (int step = 0; step < 6; ++step) {
      const std::int64_t k = 1 + below(5), c = below(11) - 5;
      switch (below(8)) {
        case 0: d = dimension::add(d, s0), value += values[0]; break;
        case 1: d = dimension::subtract(dimension::multiply(k, s1), d), value = k * values[1] - value; break;
        case 2: d = dimension::add(d, dimension::of_number(c)), value += c; break;
        case 3:
          d = dimension::floor_divide(d, k);
          value = value >= 0 ? value / k : -((-value + k - 1) / k);
          break;
        case 4: d = dimension::maximum(d, dimension::of_number(c)), value = std::max(value, c); break;
        case 5: d = dimension::minimum(d, dimension::multiply(2, s0)), value = std::min(value, 2 * values[0]); break;
        case 6:
          d = dimension::doublings(dimension::maximum(d, 0));
          value = value < 2 ? 0 : 64 - __builtin_clzll(static_cast<unsigned long long>(value - 1));
          break;
        default: d = dimension::modulo(d, s1), value = (value % values[1] + values[1]) % values[1];
      }
      steps += " -> " + dimension::to_text(d);
      ASSERT_EQ(dimension::evaluate(d, values), value) << steps;
      ASSERT_TRUE(value >= 0 || !dimension::is_never_negative(d)) << steps;
      ASSERT_EQ(dimension::from_text(dimension::to_text(d)), d) << steps;
      ASSERT_LE(dimension::symbols_in(d), 2);
    }
  }
}

TEST(DerivedDimension, EqualOnesAreEqualNumbers) {
  using namespace dimension;
  EXPECT_EQ(floor_divide(floor_divide(s0, 2), 2), floor_divide(s0, 4));
  EXPECT_EQ(floor_divide(add(floor_divide(s0, 2), 1), 3), floor_divide(add(s0, 2), 6));
  EXPECT_EQ(floor_divide(add(multiply(4, s0), 3), 2), add(multiply(2, s0), 1));
  EXPECT_EQ(floor_divide(add(multiply(2, s0), 1), 4), floor_divide(s0, 2));
  EXPECT_EQ(floor_divide(subtract(s0, 2), 2), subtract(floor_divide(s0, 2), 1));
  EXPECT_EQ(ceil_divide(s0, 2), floor_divide(add(s0, 1), 2));
  EXPECT_EQ(maximum(add(s0, 1), 1), add(s0, 1));
  EXPECT_EQ(maximum(subtract(2, add(s0, 5)), 0), 0);
  EXPECT_EQ(divide(multiply(floor_divide(s0, 2), 6), 3), multiply(floor_divide(s0, 2), 2));
}

TEST(DerivedDimension, ProvesWhatWindowsNeed) {
  using namespace dimension;
  EXPECT_TRUE(is_never_negative(subtract(s0, multiply(2, floor_divide(s0, 2)))));
  EXPECT_TRUE(is_never_negative(subtract(multiply(3, ceil_divide(s0, 3)), s0)));
  EXPECT_TRUE(is_never_negative(subtract(multiply(s1, s0), multiply(s1, multiply(4, floor_divide(s0, 4))))));
  EXPECT_FALSE(is_never_negative(subtract(s0, 1)));
  EXPECT_FALSE(is_never_negative(subtract(floor_divide(s0, 2), 1)));
  EXPECT_FALSE(is_never_negative(subtract(s0, multiply(2, ceil_divide(s0, 2)))));
}

TEST(DerivedDimension, TextsArePlain) {
  EXPECT_EQ(dimension::to_text(dimension::floor_divide(dimension::add(s0, 1), 2)), "((s0+1)/2)");
  EXPECT_EQ(dimension::to_text(dimension::maximum(dimension::subtract(s0, 3), 0)), "((s0-3)^0)");
  EXPECT_EQ(at(dimension::from_text("2*s0*((s0+1)/2)-((s0-4)^0)+3"), 5), 2 * 5 * 3 - 1 + 3);
  EXPECT_EQ(at(dimension::from_text("((7)/(s1))"), 5, 2), 3);
  for (const char* broken : {"(", "((s0)", "((s0)/0)", "((s0)/)", "((s0)^1)", "((s0)/2", "(s0/2)", "s0/2", "((s0)/-2)",
                             "", "+", "s0+", "s0*", "*s0", "s0 ", "((((((((((((((((((((((((((((((((((((((((s0"})
    EXPECT_THROW(dimension::from_text(broken), Error) << broken;
}

}  // namespace
}  // namespace gradus::derived_dimension_test
