/// Schedules: values at their corners, within programs, and what is refused.
#include "gradus/optim/schedule.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus::schedule_test {
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

TEST(Schedules, CosineRestarts) {
  expect_points(CosineDecayRestarts({.initial_learning_rate = 0.1, .first_decay_steps = 10}),
                {{0, 0.1}, {5, 0.05}, {10, 0.1}, {20, 0.05}, {30, 0.1}, {50, 0.05}, {70, 0.1}, {150, 0.1}});
  expect_points(
      CosineDecayRestarts({.initial_learning_rate = 1, .first_decay_steps = 4, .t_mul = 1, .m_mul = 0.5, .alpha = 0.2}),
      {{0, 1}, {2, 0.6}, {4, 0.6}, {6, 0.4}, {8, 0.4}, {12, 0.3}});
}

/// A period begins where it does, whatever the logarithm rounds to.
TEST(Schedules, EveryRestartIsAtTheFullRate) {
  for (double factor : {1.5, 2.0, 3.0, 10.0}) {
    const double first = factor == 1.5 ? 1024 : 10;
    const CosineDecayRestarts schedule(
        {.initial_learning_rate = 1, .first_decay_steps = first, .t_mul = factor, .alpha = 0.5});
    double begin = 0, length = first;
    for (int period = 0; period < 6; ++period, begin += length, length *= factor) {
      EXPECT_EQ(schedule(static_cast<std::int64_t>(begin)), 1) << factor << " " << period;
      if (period > 0) { EXPECT_LT(schedule(static_cast<std::int64_t>(begin) - 1), 0.53) << factor << " " << period; }
    }
  }
}

TEST(Schedules, Polynomial) {
  expect_points(PolynomialDecay({.initial_learning_rate = 1, .decay_steps = 10, .end_learning_rate = 0.2, .power = 2}),
                {{0, 1}, {5, 0.2 + 0.8 * 0.25}, {10, 0.2}, {50, 0.2}});
  expect_points(PolynomialDecay({.initial_learning_rate = 1, .decay_steps = 10, .end_learning_rate = 0, .cycle = true}),
                {{0, 1}, {5, 0.5}, {10, 0}, {15, 0.25}, {20, 0}, {25, 1 - 25.0 / 30}});
}

TEST(Schedules, InverseTime) {
  expect_points(InverseTimeDecay({.initial_learning_rate = 1, .decay_steps = 4, .decay_rate = 0.5}),
                {{0, 1}, {4, 1 / 1.5}, {6, 1 / 1.75}});
  expect_points(InverseTimeDecay({.initial_learning_rate = 1, .decay_steps = 4, .decay_rate = 0.5, .staircase = true}),
                {{3, 1}, {4, 1 / 1.5}, {7, 1 / 1.5}});
}

TEST(Schedules, OneCycle) {
  expect_points(OneCycle({.max_learning_rate = 1,
                          .total_steps = 21,
                          .pct_start = 11.0 / 21,
                          .linear = true,
                          .div_factor = 10,
                          .final_div_factor = 100}),
                {{0, 0.1}, {5, 0.55}, {10, 1}, {15, 0.5005}, {20, 0.001}, {30, 0.001}});
  expect_points(OneCycle({.max_learning_rate = 1, .total_steps = 21, .pct_start = 11.0 / 21, .div_factor = 10}),
                {{0, 0.1}, {5, 0.55}, {10, 1}, {20, 1e-5}});
  expect_points(OneCycle({.max_learning_rate = 1, .total_steps = 3, .pct_start = 0, .linear = true}), {{2, 4e-6}});
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
  EXPECT_THROW(PiecewiseConstantDecay({1}, {1.0, std::nan("")}), InvalidArgument);
  EXPECT_THROW(CosineDecay({.initial_learning_rate = std::nan(""), .decay_steps = 1}), InvalidArgument);
  EXPECT_THROW(CosineDecay({.initial_learning_rate = 1, .decay_steps = 1, .warmup_steps = -1}), InvalidArgument);
  EXPECT_THROW(CosineDecay({.initial_learning_rate = 1, .decay_steps = 9, .warmup_steps = 3}), InvalidArgument)
      << "the rate would be 0 from step 3 on";
  EXPECT_THROW(CosineDecayRestarts({.initial_learning_rate = 1, .first_decay_steps = 0}), InvalidArgument);
  EXPECT_THROW(CosineDecayRestarts({.initial_learning_rate = 1, .first_decay_steps = 1, .t_mul = 0.5}),
               InvalidArgument);
  EXPECT_THROW(CosineDecayRestarts({.initial_learning_rate = 1, .first_decay_steps = 1, .m_mul = 0}), InvalidArgument);
  EXPECT_THROW(PolynomialDecay({.initial_learning_rate = 1, .decay_steps = -1}), InvalidArgument);
  EXPECT_THROW(PolynomialDecay({.initial_learning_rate = 1, .decay_steps = 1, .power = 0}), InvalidArgument);
  EXPECT_THROW(InverseTimeDecay({.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = -1}), InvalidArgument);
  EXPECT_THROW(OneCycle({.max_learning_rate = 1, .total_steps = 0}), InvalidArgument);
  EXPECT_THROW(OneCycle({.max_learning_rate = 1, .total_steps = 10, .pct_start = 1}), InvalidArgument);
  EXPECT_THROW(OneCycle({.max_learning_rate = 1, .total_steps = 10, .div_factor = 0}), InvalidArgument);
  EXPECT_THROW(Schedule([](Tensor step) { return step; })(0), InvalidArgument);
}

}  // namespace
}  // namespace gradus::schedule_test
