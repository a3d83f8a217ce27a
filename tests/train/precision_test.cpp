/// fit under mixed precision: curves near those of f32, overflows skipped and not taken for divergence; averages.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/gradus.h"
#include "tests/test_directory.h"

namespace gradus::precision_test {
namespace {

struct Problem {
  Tensor x = random::normal({64, 8}, {.stddev = 0.2, .seed = 1});  // no overflow, not even where a part is one example
  Tensor y = reduce_sum(x, {.axis = {1}, .keepdims = true}) * 0.25;
};

std::vector<double> curve(Policy policy, std::int64_t micro_batch = 0) {
  set_seed(3);
  const Problem problem;
  Sequential model({Dense(16, tanh), Dense(1, linear, {.dtype = f32})}, {.policy = policy});
  model.build({f32, {any_size, 8}});
  Adam optimizer({.learning_rate = 0.01});
  const auto dataset = data::from_tensor_slices(problem.x, problem.y).batch(16);
  return fit(model, optimizer, MeanSquaredError(), dataset, {.epochs = 5, .micro_batch = micro_batch, .verbose = false})
      .loss;
}

TEST(MixedPrecision, FitFollowsFloat) {
  const std::vector<double> wanted = curve(float32);
  for (const Policy& policy : {mixed_float16, mixed_bfloat16})
    for (const std::int64_t micro_batch : {0, 5}) {
      const std::vector<double> got = curve(policy, micro_batch);
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 0.02 * wanted[0]) << i;
    }
}

TEST(MixedPrecision, AnOverflowIsSkippedAndNoDivergence) {
  const Problem problem;
  const Tensor bad = full({1, 8}, std::numeric_limits<float>::infinity());
  const Tensor x = concat({problem.x.rows(0, 32), bad, problem.x.rows(33, 64)});
  for (const bool eagerly : {false, true}) {
    Sequential model({Dense(16, tanh), Dense(1, linear, {.dtype = f32})}, {.policy = mixed_float16});
    SGD optimizer;
    // The first Dense gives inf - inf, so the third of four steps is not finite.
    const History history =
        fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, problem.y).batch(16),
            {.metrics = {MeanAbsoluteError()}, .function = {.run_eagerly = eagerly}, .verbose = false});
    EXPECT_TRUE(std::isfinite(history.loss[0])) << eagerly;
    EXPECT_TRUE(std::isfinite(history["mean_absolute_error"][0])) << eagerly;
    EXPECT_EQ(optimizer.iterations(), 3);
    EXPECT_EQ(optimizer.skipped_steps(), 1);
    EXPECT_EQ(model.loss_scale(), 16384);
  }
}

TEST(MixedPrecision, StepsCountAlikeInATrainingThatGoesOn) {
  const TestDirectory directory("resume_skipped");
  const Problem problem;
  const Tensor x = concat({full({1, 8}, std::numeric_limits<float>::infinity()), problem.x.rows(1, 64)});
  std::vector<std::int64_t> steps;
  for (const std::int64_t last : {6, 8}) {
    Sequential model({Dense(16, tanh), Dense(1, linear, {.dtype = f32})}, {.policy = mixed_float16});
    SGD optimizer;
    const Callback counting{.on_step_end = [&](const StepLog& log) {
      steps.push_back(log.step);
      log.stop = log.stop || log.step == last;
    }};
    fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, problem.y).batch(16),
        {.epochs = 2, .callbacks = {counting}, .checkpoints = {.directory = directory}, .verbose = false});
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

/// Where no scale helps a training has diverged, too, instead of going on with steps that do nothing.
TEST(MixedPrecision, WhatNeverIsFiniteDiverges) {
  const Problem problem;
  const Tensor nothing = full({64, 8}, std::nan(""));
  Sequential model({Dense(16, tanh), Dense(1, linear, {.dtype = f32})}, {.policy = mixed_float16});
  SGD optimizer;
  const auto dataset = data::from_tensor_slices(nothing, problem.y).batch(16);
  const History history = fit(model, optimizer, MeanSquaredError(), dataset, {.verbose = false});
  EXPECT_TRUE(std::isnan(history.loss[0])) << "no step of this epoch counts";
  EXPECT_EQ(optimizer.skipped_steps(), 4);
  EXPECT_THROW(fit(model, optimizer, MeanSquaredError(), dataset, {.epochs = 50, .verbose = false}), Diverged);
  EXPECT_EQ(optimizer.iterations(), 0);
  EXPECT_EQ(optimizer.skipped_steps(), 15 + 126) << "from 2^15 down to 2^-126";
  bool told = false;
  const Callback guard{.on_diverged = [&](const Diverged&) { told = true; }};
  fit(model, optimizer, MeanSquaredError(), dataset, {.callbacks = {guard}, .verbose = false});
  EXPECT_TRUE(told);
}

TEST(MovingAverages, FitEndsWithThem) {
  const Problem problem;
  Sequential model{Dense(1)};
  SGD optimizer({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 0.5});
  fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(problem.x, problem.y).batch(16),
      {.verbose = false});
  const Variables state = optimizer.variables();
  EXPECT_TRUE(bitwise_equal(model.trainable_variables()[0].value(), state[2].value())) << state[2].name();
}

}  // namespace
}  // namespace gradus::precision_test
