/// The range test: against a training that is known in closed form, and against PyTorch Lightning's suggestions.
#include "gradus/train/learning_rate_range.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/noise.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_state.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"

namespace gradus::range_of_learning_rates_test {
namespace {

/// A data set that says what the losses are, whatever the model is.
struct Pretended {
  Sequential model{Dense(1)};
  SGD optimizer;
  LearningRateRange run(const std::vector<double>& losses, const LearningRateRangeOptions& options) const {
    const auto n = static_cast<std::int64_t>(losses.size());
    const auto dataset = data::from_tensor_slices(ones({n, 1}), from_values(losses, Shape{n})).batch(1);
    const auto told = [](const Tensor& y, const Tensor& p) { return Loss::mean(y + 0.0 * cast(squeeze(p, {1}), f64)); };
    return learning_rate_range_test(model, optimizer, told, dataset, options);
  }
};

double raw(const std::string& kind, double i) {
  if (kind == "bowl") return 1 + (i - 60) * (i - 60) / 900;
  if (kind == "cliff")
    return 2.5 / (1 + std::exp((i - 45) / 4)) + 0.1 * std::sin(i) + (i > 70 ? std::exp((i - 80) / 3) : 0);
  return 3 - 0.02 * i + 0.3 * std::cos(0.7 * i);
}

TEST(LearningRateRange, SuggestsAsLightning) {
  struct Case {
    std::string kind;
    double smoothing;
    std::size_t steps, suggested;
  };
  const std::vector<Case> cases{
      // learning_rate_range_values.py
      {"bowl", 0.0, 100, 10}, {"bowl", 0.9, 100, 16}, {"bowl", 0.98, 100, 10},
      {"cliff", 0.0, 63, 47}, {"cliff", 0.9, 84, 48}, {"cliff", 0.98, 93, 54},
      {"line", 0.0, 100, 92}, {"line", 0.9, 100, 13}, {"line", 0.98, 100, 13},
  };
  for (const Case& each : cases) {
    std::vector<double> losses;
    for (int i = 0; i < 100; ++i) losses.push_back(raw(each.kind, i));
    const LearningRateRange range = Pretended().run(losses, {.smoothing = each.smoothing});
    ASSERT_EQ(range.loss.size(), each.steps) << each.kind << each.smoothing;
    EXPECT_EQ(range.has_diverged(), each.steps < 100);
    EXPECT_EQ(range.loss,
              std::vector<double>(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(each.steps)));
    EXPECT_EQ(range.suggestion(), range.learning_rate[each.suggested]) << each.kind << each.smoothing;
  }
}

/// One weight w, loss w^2: a step at rate r multiplies w by 1 - 2 r, so it explodes past r = 1.
TEST(LearningRateRange, IsTheTrainingAtRisingRates) {
  Sequential model{Dense(1, linear, {.use_bias = false, .kernel_initializer = initializers::constant(3)})};
  SGD optimizer({.learning_rate = 7});
  const auto dataset = data::from_tensor_slices(ones({8, 1}), zeros({8, 1})).batch(4);
  const LearningRateRange range =
      learning_rate_range_test(model, optimizer, MeanSquaredError(), dataset,
                               {.min_learning_rate = 1e-3, .max_learning_rate = 100, .steps = 60, .smoothing = 0.5});
  double weight = 3;
  for (std::size_t i = 0; i < range.loss.size(); ++i) {
    EXPECT_NEAR(range.learning_rate[i], 1e-3 * std::pow(1e5, static_cast<double>(i) / 59), 1e-9 + i * 1e-7);
    EXPECT_NEAR(range.loss[i], weight * weight, 1e-3 * weight * weight) << i;
    weight *= 1 - 2 * range.learning_rate[i];
  }
  EXPECT_TRUE(range.has_diverged());
  EXPECT_LT(range.learning_rate.back(), 100);
  EXPECT_GT(range.learning_rate.back(), 1) << "it ended because it exploded";
  EXPECT_GT(range.suggestion(), 1e-2);
  EXPECT_LT(range.suggestion(), 1);
}

TEST(LearningRateRange, NothingOfTheProgramChanges) {
  Sequential model{Dense(4, relu), Dropout(0.5), Dense(1)};
  model.build({f32, {any_size, 3}});
  Adam optimizer({.learning_rate = 0.25});
  const Tensor x = random::normal({32, 3}, {.seed = 1});
  const auto dataset = data::from_tensor_slices(x, x.rows(0, 32)).batch(8);
  const auto loss = [](const Tensor& y, const Tensor& p) { return Loss::mean(square(p - y)); };
  fit(model, optimizer, loss, dataset, {.epochs = 1, .verbose = false});  // so that it has state for these variables
  std::vector<Tensor> before;
  for (const Variables& all : {model.variables(), optimizer.variables()})
    for (const Variable& variable : all) before.push_back(variable.value());
  const std::uint64_t random = random_state();
  const auto first = learning_rate_range_test(model, optimizer, loss, dataset, {.steps = 12});
  EXPECT_EQ(random_state(), random);
  const auto second = learning_rate_range_test(model, optimizer, loss, dataset, {.steps = 12});
  EXPECT_EQ(first.loss, second.loss) << "dropout follows from the test's seed";
  EXPECT_NE(first.loss, learning_rate_range_test(model, optimizer, loss, dataset, {.steps = 12, .seed = 1}).loss);
  std::size_t i = 0;
  for (const Variables& all : {model.variables(), optimizer.variables()})
    for (const Variable& variable : all) EXPECT_TRUE(bitwise_equal(before[i++], variable.value())) << variable.name();
  EXPECT_EQ(optimizer.learning_rate(), 0.25);
  Sequential unbuilt{Dense(1)};
  (void)learning_rate_range_test(unbuilt, SGD(), loss, dataset, {.steps = 3});
  EXPECT_FALSE(unbuilt.is_built());
}

TEST(LearningRateRange, ALossThatIsNotFiniteEndsIt) {
  std::vector<double> losses(40, 1.0);
  for (std::size_t i = 0; i < losses.size(); ++i) losses[i] -= 0.01 * static_cast<double>(i);
  losses[20] = std::nan("");
  const LearningRateRange range = Pretended().run(losses, {.steps = 40});
  EXPECT_EQ(range.loss.size(), 21u);
  EXPECT_TRUE(range.has_diverged());
  EXPECT_GT(range.suggestion(), range.learning_rate.front());
  losses[3] = HUGE_VAL;
  const LearningRateRange early = Pretended().run(losses, {.steps = 40});
  EXPECT_EQ(early.loss.size(), 4u);
  expect_says(error_of<InvalidArgument>([&] { (void)early.suggestion(); }), "smaller min_learning_rate");
  EXPECT_FALSE(early.picture()[0].mark);
  EXPECT_EQ(early.table().rows.size(), 4u);
  for (std::size_t i = 0; i < losses.size(); ++i) losses[i] = 2 + 0.01 * static_cast<double>(i);
  expect_says(error_of<InvalidArgument>([&] { (void)Pretended().run(losses, {.steps = 40}).suggestion(); }),
              "fell nowhere");
}

TEST(LearningRateRange, WhatDoesNotFitIsRefused) {
  const Pretended training;
  const std::vector<double> losses(10, 1.0);
  EXPECT_THROW(training.run(losses, {.min_learning_rate = 0}), InvalidArgument);
  EXPECT_THROW(training.run(losses, {.min_learning_rate = 1, .max_learning_rate = 1}), InvalidArgument);
  EXPECT_THROW(training.run(losses, {.max_learning_rate = HUGE_VAL}), InvalidArgument);
  EXPECT_THROW(training.run(losses, {.steps = 2}), InvalidArgument);
  EXPECT_THROW(training.run(losses, {.smoothing = 1}), InvalidArgument);
  EXPECT_THROW(training.run(losses, {.stop_factor = std::nan("")}), InvalidArgument);
  EXPECT_THROW(training.run({}, {}), Error);
}

TEST(LearningRateRange, ASharedHandleIsRefused) {
  const Pretended training;
  const auto dataset = data::from_tensor_slices(ones({8, 1}), ones({8, 1})).batch(4);
  expect_error<InvalidArgument>(
      [&] { learning_rate_range_test(shared(training.model), training.optimizer, MeanSquaredError(), dataset); },
      {"learning_rate_range_test", "shared()", "Sequential{model}"});
}

}  // namespace
}  // namespace gradus::range_of_learning_rates_test
