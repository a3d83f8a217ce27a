/// A loss that is not finite: the step and the layer are named, and nothing after it was updated.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/random.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"

namespace gradus::diverged_test {
namespace {

std::string divergence_of(Module& model, Optimizer& optimizer, const Dataset<2>& dataset, FitOptions options = {}) {
  options.verbose = false;
  options.epochs = 3;
  try {
    fit(model, optimizer, MeanSquaredError(), dataset, std::move(options));
  } catch (const Diverged& error) { return error.what(); }
  ADD_FAILURE() << "it did not diverge";
  return {};
}

Dataset<2> plain_data() {
  const Tensor x = random::normal({40, 3}, {.seed = 1});
  return data::from_tensor_slices(x, random::normal({40, 2}, {.seed = 2})).batch(8);
}

/// exp of a weight that grows without bound overflows after a few steps.
TEST(Diverged, NamesStepAndLayer) {
  for (bool eagerly : {false, true}) {
    set_seed(1);
    Sequential model{Dense(4, linear, {.name = "first"}), Lambda([](Tensor x) { return exp(x); }, "boom"),
                     Dense(2, linear, {.name = "last"})};
    model.build({f32, {any_size, 3}});
    SGD optimizer({.learning_rate = 0.0});
    const Tensor x = concat({ones({24, 3}), full({8, 3}, 500.0), ones({8, 3})});
    model.variables()["first/kernel"].assign(ones({3, 4}));
    const auto dataset = data::from_tensor_slices(x, ones({40, 2})).batch(8);
    const std::string message = divergence_of(model, optimizer, dataset, {.function = {.run_eagerly = eagerly}});
    expect_says(message, "step 4 (epoch 1)");
    expect_says(message, "layer sequential/boom");
    expect_says(message, "`exp` gives inf");
    expect_says(message, "smaller learning rate");
    EXPECT_EQ(optimizer.iterations(), 3);
  }
}

TEST(Diverged, KeepsTheWeightsBeforeTheStep) {
  set_seed(1);
  Sequential model{Dense(2)};
  Adam optimizer({.learning_rate = 1e-3});
  const double nan = std::nan("");
  const Tensor x = concat({random::normal({32, 3}, {.seed = 1}), full({8, 3}, nan)});
  const auto dataset = data::from_tensor_slices(x, ones({40, 2})).shuffle({.seed = 9}).batch(8);
  const std::string message = divergence_of(model, optimizer, dataset);
  expect_says(message, "field 0 of this batch holds nan");
  for (const Variable& variable : model.variables() + optimizer.variables())
    EXPECT_TRUE(all_finite(cast(variable.value(), f64)).item()) << variable.name();
}

TEST(Diverged, AnUpdateThatWasTooLarge) {
  set_seed(1);
  Sequential model{Dense(2, linear, {.name = "only"})};
  SGD optimizer({.learning_rate = 1e39});
  const std::string message = divergence_of(model, optimizer, plain_data());
  expect_says(message, "diverged");
  expect_says(message, "only");
  expect_says(message, "1e+39");
  expect_says(message, "global_clipnorm");
}

TEST(Diverged, LaterEpochsToo) {
  set_seed(1);
  Sequential model{Dense(2)};
  SGD optimizer({.learning_rate = 1e-3});
  const Callback spoil{.on_epoch_end = [](EpochLog log) {
    if (log.epoch == 1) log.model.variables()[1].assign(constant({1.0, std::numeric_limits<double>::infinity()}));
  }};
  const std::string message = divergence_of(model, optimizer, plain_data(), {.callbacks = {spoil}});
  expect_says(message, "step 11 (epoch 3)");
  expect_says(message, "variable dense/bias");
}

}  // namespace
}  // namespace gradus::diverged_test
