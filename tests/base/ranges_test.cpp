/// Ranges of options: which numbers they hold, what is said of others, and where numbers are found in a struct.
#include "gradus/base/ranges.h"
#include "gradus/base/rooms.h"
#include <gtest/gtest.h>
#include <cmath>
#include <cstdint>
#include "tests/errors.h"

namespace gradus::ranges_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

TEST(Ranges, HoldWhatTheirNamesSay) {
  struct Case {
    Allowed range;
    std::vector<double> in, out;
  };
  const Case cases[] = {
      {Allowed::finite("x"), {-1e300, 0, 7}, {inf, -inf, nan}},
      {Allowed::positive("x"), {1e-300, 5}, {0, -0.0, -1, inf, nan}},
      {Allowed::not_negative("x"), {0, -0.0, 3}, {-1e-300, inf, nan}},
      {Allowed::at_least(3, "x"), {3, 4}, {2.9, inf, nan}},
      {Allowed::within(2, 5, "x"), {2, 5}, {1.9, 5.1, nan}},
      {Allowed::share("x"), {0, 0.5, 1}, {-0.1, 1.1, nan}},
      {Allowed::share_below_one("x"), {0, 0.99}, {1, -0.1, nan}},
      {Allowed::between_zero_and_one("x"), {0.01, 0.99}, {0, 1, nan}},
      {Allowed::any("x"), {nan, inf, -1}, {}},
  };
  for (const Case& each : cases) {
    for (const double x : each.in) EXPECT_TRUE(each.range.holds(x)) << x;
    for (const double x : each.out) EXPECT_FALSE(each.range.holds(x)) << x;
  }
}

struct Inner {
  int n = 1;
  static constexpr auto ranges() { return std::array{Allowed::positive("n")}; }
};
struct Sample {
  double rate = 0.1;
  std::optional<double> beta = {};
  std::vector<std::int64_t> sizes = {1, 2};
  std::array<double, 2> ends{0, 1};
  bool flag = false;
  char letter = 'a';
  std::uint64_t seed = 0;
  Inner inner = {};
  std::optional<Inner> maybe = {};
  static constexpr auto ranges() {
    return std::array{Allowed::share("rate beta"), Allowed::at_least(1, "sizes"), Allowed::finite("ends"),
                      Allowed::any("seed")};
  }
};

std::string said_of(const auto& change) {
  Sample options;
  change(options);
  return error_of<InvalidArgument>([&] { check_options("Layer", options); });
}

TEST(Ranges, FindEveryNumberOfAStruct) {
  check_options("Layer", Sample{.beta = 1, .seed = ~std::uint64_t{0}, .maybe = Inner{3}});
  EXPECT_EQ(said_of([](Sample& o) { o.rate = nan; }),
            "Layer: rate must be within 0 and 1, got nan; expected a finite number");
  EXPECT_EQ(said_of([](Sample& o) { o.beta = -1; }), "Layer: beta must be within 0 and 1, got -1");
  EXPECT_EQ(said_of([](Sample& o) { o.sizes = {4, 0}; }), "Layer: sizes[1] must be at least 1, got 0");
  EXPECT_EQ(said_of([](Sample& o) { o.ends[1] = inf; }),
            "Layer: ends[1] must be finite, got inf; expected a finite number");
  EXPECT_EQ(said_of([](Sample& o) { o.inner.n = 0; }), "Layer: inner: n must be positive, got 0");
  EXPECT_EQ(said_of([](Sample& o) { o.maybe = Inner{-3}; }), "Layer: maybe: n must be positive, got -3");
}

TEST(Ranges, SayWhatIsExpected) {
  const auto said = [](const Allowed& range) {
    return error_of<InvalidArgument>([&] { check_number("f", "x", range, nan); });
  };
  EXPECT_EQ(said(Allowed::positive("")), "f: x must be positive, got nan; expected a finite number");
  EXPECT_EQ(said(Allowed::not_negative("")), "f: x must not be negative, got nan; expected a finite number");
  EXPECT_EQ(said(Allowed::between_zero_and_one("")), "f: x must be between 0 and 1, got nan; expected a finite number");
  EXPECT_EQ(said(Allowed{"", 1, inf, true}), "f: x must be above 1, got nan; expected a finite number");
  EXPECT_EQ(said(Allowed{"", -inf, 0, true}), "f: x must be at most 0, got nan; expected a finite number");
  EXPECT_EQ(said(Allowed{"", 0, 1, true}), "f: x must be above 0 and at most 1, got nan; expected a finite number");
}

}  // namespace
}  // namespace gradus::ranges_test
