/// C++ branches beside branches and loops that are ops.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"

namespace gradus::guard_regions_test {
namespace {

TEST(GuardRegions, ABranchOnWhatARegionComputesNamesCond) {
  const auto f = function([](Tensor x) {
    const Tensor is_large = reduce_max(abs(x)) > 5;
    return cond(reduce_sum(x) > 0, [&] { return is_large ? x / 2 : x * 2; }, [&] { return -x; });
  });
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(bitwise_equal(f(constant({1.0, 2.0})), constant({2.0, 4.0})));
    EXPECT_TRUE(bitwise_equal(f(constant({-1.0, -2.0})), constant({1.0, 2.0})));
    EXPECT_TRUE(bitwise_equal(f(constant({1.0, 8.0})), constant({0.5, 4.0})));
  }
  EXPECT_EQ(f.explain().paths, 2) << "on what is known around a region it is a guard";
  const auto loop = function([](Tensor x) {
    return while_loop([](Tensor r) { return reduce_sum(r) < 100; },
                      [](Tensor r) {
                        if (reduce_sum(r) > 5) return r * 3;
                        return r * 2;
                      },
                      x, {.max_iterations = 9});
  });
  try {
    loop(constant({1.0, 2.0}));
    ADD_FAILURE() << "accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("cond"), std::string::npos) << error.what();
  }
}

TEST(GuardRegions, WhereNoCallDecidesTheErrorNamesCond) {
  const auto halved = [](Tensor x) {
    if (reduce_sum(x) > 4) return x / 2;
    return x;
  };
  const Tensor xs = constant({{1.0, 2.0}, {3.0, 4.0}});
  const auto expect_named = [](const auto& call) {
    try {
      call();
      ADD_FAILURE() << "accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("cond("), std::string::npos) << error.what();
    }
  };
  expect_named([&] { vectorized_map(function(halved), xs); });
  expect_named([&] { function([&](Tensor t) { return vectorized_map(halved, t); })(xs); });
}

TEST(GuardRegions, OnTheResultsOfALoopWhichRunsOnceForAllOfThem) {
  const auto body = [](Tensor x) {
    const auto [state, sums] = scan([](Tensor s, Tensor v) { return std::pair{s + v, s * 2}; }, constant(0.0), x);
    if (state > 5) return reduce_sum(sums) + state;
    return reduce_max(sums) - state;
  };
  const auto f = function(body);
  for (int round = 0; round < 3; ++round)
    for (const Tensor& x : {constant({1.0, 2.0, 3.0}), constant({1.0, 1.0, 1.0})})
      EXPECT_TRUE(bitwise_equal(f(x), body(x)));
  EXPECT_EQ(f.explain().paths, 2);
}

TEST(GuardRegions, GradientsThroughLoopsOnEitherPath) {
  const auto power = [](Tensor x) {
    const auto times = [&](int n) {
      return scan([&](Tensor p, Tensor) { return std::pair{p * x, p}; }, constant(1.0), random::uniform({n})).first;
    };
    if (x > 1) return times(3);
    return times(2);
  };
  const auto d = function([&](Tensor x) { return gradient(power, x); });
  const auto second = function([&](Tensor x) { return gradient([&](Tensor v) { return gradient(power, v); }, x); });
  for (int round = 0; round < 2; ++round) {
    EXPECT_FLOAT_EQ(static_cast<float>(d(constant(2.0)).item()), 12);
    EXPECT_FLOAT_EQ(static_cast<float>(d(constant(0.5)).item()), 1);
    EXPECT_FLOAT_EQ(static_cast<float>(second(constant(2.0)).item()), 12);
    EXPECT_FLOAT_EQ(static_cast<float>(second(constant(0.5)).item()), 2);
  }
}

}  // namespace
}  // namespace gradus::guard_regions_test
