/// Schedules: values at their corners, within programs, and what is refused.
#include "gradus/optim/schedule.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

struct Point {
  std::int64_t step;
  double rate;
};

void expect_points(const Schedule& schedule, std::initializer_list<Point> points) {
  const auto compiled = function([&](Tensor step) { return schedule.at(step); });
  for (const Point& point : points) {
    EXPECT_NEAR(schedule(point.step), point.rate, 1e-15) << point.step;
    EXPECT_EQ(compiled(gradus::constant(point.step)).item(), schedule(point.step)) << point.step;
  }
}

TEST(Schedules, Cosine) {
  expect_points(CosineDecay({.initial_learning_rate = 0.1, .decay_steps = 10}),
                {{0, 0.1}, {5, 0.05}, {10, 0}, {1000, 0}});
  expect_points(CosineDecay({.initial_learning_rate = 0.1, .decay_steps = 10, .alpha = 0.2}),
                {{0, 0.1}, {5, 0.06}, {10, 0.02}, {11, 0.02}});
  expect_points(
      CosineDecay({.initial_learning_rate = 0, .decay_steps = 900, .warmup_steps = 100, .warmup_target = 1e-3}),
      {{0, 0}, {50, 5e-4}, {100, 1e-3}, {550, 5e-4}, {1000, 0}});
}

TEST(Schedules, Exponential) {
  expect_points(ExponentialDecay({.initial_learning_rate = 1, .decay_steps = 10, .decay_rate = 0.5}),
                {{0, 1}, {5, std::sqrt(0.5)}, {20, 0.25}});
  expect_points(ExponentialDecay({.initial_learning_rate = 1, .decay_steps = 10, .decay_rate = 0.5, .staircase = true}),
                {{9, 1}, {10, 0.5}, {29, 0.25}});
}

TEST(Schedules, PiecewiseConstant) {
  expect_points(PiecewiseConstantDecay({100, 200}, {1.0, 0.1, 0.01}),
                {{0, 1}, {100, 1}, {101, 0.1}, {200, 0.1}, {201, 0.01}, {300, 0.01}});
}

TEST(Schedules, AnyFunctionMadeOfOps) {
  const Schedule own = [](Tensor step) { return rsqrt(cast(step, f32) + 1); };
  EXPECT_NEAR(own(3), 0.5, 1e-6);
  EXPECT_FALSE(own.is_constant());
  EXPECT_EQ(Schedule(0.25)(1000), 0.25);
}

TEST(Schedules, RefuseWhatMakesNoSense) {
  EXPECT_THROW(CosineDecay({.initial_learning_rate = 1, .decay_steps = 0}), InvalidArgument);
  EXPECT_THROW(ExponentialDecay({.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 0}), InvalidArgument);
  EXPECT_THROW(PiecewiseConstantDecay({1, 2}, {1.0, 0.1}), InvalidArgument);
  EXPECT_THROW(PiecewiseConstantDecay({2, 1}, {1.0, 0.1, 0.01}), InvalidArgument);
  EXPECT_THROW(Schedule([](Tensor step) { return step; })(0), InvalidArgument);
}

}  // namespace
}  // namespace gradus
