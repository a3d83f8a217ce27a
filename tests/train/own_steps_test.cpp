/// Training steps of one's own: fit drives them as its own step, compiled or not, on shards, stopped and resumed, and
/// takes back a step whose loss is not finite.
#include "gradus/train/training_steps.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/distribute/strategy.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/callbacks.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::own_steps_test {
namespace {

/// A regression whose step is that of fit, written by hand.
struct OwnStep {
  Sequential model{Dense(6, tanh), Dense(1)};
  Adam optimizer{{.learning_rate = 0.02}};
  MeanSquaredError loss;
  Tensor x = random::normal({70, 3}, {.seed = 1}), y = reduce_sum(x, {.axis = {1}, .keepdims = true});
  Dataset<2> data = data::from_tensor_slices(x, y).shuffle({.seed = 2}).batch(16);

  OwnStep() {
    set_seed(3);
    model.build({f32, {any_size, 3}});
  }
  auto train() {
    return [this](Tensor of_x, Tensor of_y) {
      GradientTape tape;
      const Tensor prediction = model(of_x);
      const Loss found = loss(of_y, prediction);
      optimizer.apply_gradients(tape.gradient(found, model.trainable_variables()));
      Logs logs{{"loss", found}, {"error", Loss::mean(mean_absolute_error(of_y, prediction))}};
      logs.compute_metrics(of_y, prediction);
      return logs;
    };
  }
  auto test() const {
    return [this](Tensor of_x, Tensor of_y) {
      const Tensor prediction = model(of_x);
      return Logs{{"loss", loss(of_y, prediction)}};
    };
  }
};

void expect_equal_variables(const OwnStep& a, const OwnStep& b) {
  const Variables of_a = a.model.variables() + a.optimizer.variables();
  const Variables of_b = b.model.variables() + b.optimizer.variables();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i)
    EXPECT_TRUE(bitwise_equal(of_a[i].value(), of_b[i].value())) << of_a[i].name();
}

TEST(OwnSteps, IsTheStepOfFit) {
  OwnStep built_in, own;
  const History a = fit(built_in.model, built_in.optimizer, built_in.loss, built_in.data,
                        {.epochs = 3, .metrics = {MeanAbsoluteError()}, .validation = own.data, .verbose = false});
  std::int64_t last = 0;
  const Callback counts{.on_step_end = [&](const StepLog& log) {
    last = log.step;
    EXPECT_TRUE(std::isfinite(log.loss.item()));
  }};
  const History b = fit(own.model, own.optimizer, TrainingSteps{.train = own.train(), .test = own.test()}, own.data,
                        {.epochs = 3,
                         .metrics = {MeanAbsoluteError()},
                         .validation = own.data,
                         .callbacks = {counts, early_stopping({.patience = 3, .monitor = "val_loss"})},
                         .verbose = false});
  expect_equal_variables(built_in, own);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.validation_loss, b.validation_loss);
  EXPECT_EQ(a["mean_absolute_error"], b["mean_absolute_error"]);
  EXPECT_NEAR(b["error"][2], b["mean_absolute_error"][2], 1e-6);
  EXPECT_EQ(last, 15);
  EXPECT_EQ(evaluate(own.model, own.test(), own.data).loss, b.validation_loss.back());
}

TEST(OwnSteps, EagerlyAndOnShards) {
  OwnStep compiled, eager, divided;
  const History a = fit(compiled.model, compiled.optimizer, compiled.train(), compiled.data,
                        {.epochs = 2, .metrics = {MeanAbsoluteError()}, .verbose = false});
  const History b =
      fit(eager.model, eager.optimizer, eager.train(), eager.data,
          {.epochs = 2, .metrics = {MeanAbsoluteError()}, .function = {.run_eagerly = true}, .verbose = false});
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a["error"], b["error"]);
  expect_equal_variables(compiled, eager);
  const History c = fit(divided.model, divided.optimizer, divided.train(), divided.data,
                        {.epochs = 2,
                         .metrics = {MeanAbsoluteError()},
                         .strategy = MirroredStrategy({.devices = {cpu(0), cpu(1)}}),
                         .verbose = false});
  for (const char* name : {"loss", "error", "mean_absolute_error"}) EXPECT_NEAR(a[name][1], c[name][1], 1e-5) << name;
}

TEST(OwnSteps, ResumeInTheBitsOfTheUndisturbed) {
  OwnStep straight;
  set_seed(8);
  const History whole = fit(straight.model, straight.optimizer, straight.train(), straight.data,
                            {.epochs = 4, .metrics = {MeanAbsoluteError()}, .verbose = false});
  const TestDirectory directory("own_steps");
  FitOptions options{
      .epochs = 4, .metrics = {MeanAbsoluteError()}, .checkpoints = {.directory = directory}, .verbose = false};
  OwnStep part, rest;
  set_seed(8);
  FitOptions stopped = options;
  stopped.callbacks = {{.on_step_end = [](const StepLog& log) { log.stop = log.step == 7; }}};
  fit(part.model, part.optimizer, part.train(), part.data, stopped);
  const History history = fit(rest.model, rest.optimizer, rest.train(), rest.data, options);
  expect_equal_variables(straight, rest);
  for (const char* name : {"loss", "error", "mean_absolute_error"})
    EXPECT_EQ(history[name], std::vector<double>(whole[name].begin() + 1, whole[name].end())) << name;
  OwnStep done;
  EXPECT_EQ(fit(done.model, done.optimizer, done.train(), done.data, options)["error"], whole["error"]);
}

TEST(OwnSteps, SeveralOptimizersWithoutALoss) {
  struct Pair {
    Sequential generator{Dense(2)}, critic{Dense(1)};
    SGD first{{.learning_rate = 0.05, .momentum = 0.9}}, second{{.learning_rate = 0.05}};
    Pair() {
      set_seed(4);
      generator.build({f32, {any_size, 2}});
      critic.build({f32, {any_size, 2}});
      first.build(generator.trainable_variables());
      second.build(critic.trainable_variables());
    }
    auto step() {
      return [this](Tensor x) {
        GradientTape tape({.persistent = true});
        const Tensor made = generator(x);
        const Loss a = Loss::mean(square(critic(made) - 1.0)), b = Loss::mean(square(critic(x)));
        first.apply_gradients(tape.gradient(a, generator.trainable_variables()));
        second.apply_gradients(tape.gradient(b, critic.trainable_variables()));
        return Logs{{"generator_loss", a}, {"critic_loss", b}};
      };
    }
  };
  const auto data = data::from_tensor_slices(random::normal({40, 2}, {.seed = 5})).batch(8);
  const TestDirectory directory("own_optimizers");
  const auto run = [&](int epochs, bool saves) {
    Pair pair;
    FitOptions options{.epochs = epochs, .verbose = false};
    if (saves) options.checkpoints = {.directory = directory};
    Sequential both{shared(pair.generator), shared(pair.critic)};
    const TrainingSteps steps{.train = pair.step(), .optimizers = {pair.second}};
    const History history = fit(both, pair.first, steps, data, options);
    return std::pair{history, pair.generator.variables() + pair.critic.variables() + pair.first.variables()};
  };
  const auto [whole, expected] = run(4, false);
  run(2, true);
  const auto [rest, found] = run(4, true);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(bitwise_equal(found[i].value(), expected[i].value())) << expected[i].name();
  EXPECT_EQ(rest["critic_loss"].back(), whole["critic_loss"].back());
  EXPECT_TRUE(std::isnan(whole.loss[0]));
  Pair pair;
  Sequential both{shared(pair.generator), shared(pair.critic)};
  expect_error<InvalidArgument>(
      [&] {
        fit(both, pair.first, TrainingSteps{.train = pair.step(), .optimizers = {pair.second}}, data,
            {.callbacks = {early_stopping()}, .verbose = false});
      },
      {"no `loss`", "generator_loss"});
  SGD unbuilt;
  expect_error<InvalidArgument>(
      [&] {
        fit(both, pair.first, TrainingSteps{.train = pair.step(), .optimizers = {unbuilt}}, data, {.verbose = false});
      },
      {"optimizer.build"});
}

TEST(OwnSteps, ALossThatIsNotFiniteChangesNothing) {
  OwnStep own;
  const auto spoilt = data::from_tensor_slices(own.x, where(abs(own.y) > 3.5, own.y * 1e30, own.y)).batch(8);
  std::vector<Tensor> before;
  std::int64_t steps = 0;
  const Callback keeps{.on_step_end = [&](const StepLog& log) {
    if (!std::isfinite(log.loss.item())) return;
    ++steps;
    before.clear();
    for (const Variable& each : own.model.variables()) before.push_back(each.value());
  }};
  const std::string message = error_of<Diverged>([&] {
    fit(own.model, own.optimizer, own.train(), spoilt, {.epochs = 9, .callbacks = {keeps}, .verbose = false});
  });
  expect_says(message, "log `loss`");
  expect_says(message, text("step ", own.optimizer.iterations() + 1, " "));
}

TEST(OwnSteps, Mistakes) {
  OwnStep own;
  const auto fit_with = [&](FitOptions options) {
    options.verbose = false;
    fit(own.model, own.optimizer, own.train(), own.data, options);
  };
  expect_error<InvalidArgument>([&] { fit_with({.validation = own.data}); }, {"TrainingSteps", ".test"});
  expect_error<InvalidArgument>([&] { fit_with({.micro_batch = 4}); }, {"micro_batch", "step of one's own"});
  expect_error<InvalidArgument>([&] { fit_with({.sample_weight = true}); }, {"sample_weight"});
  expect_error<InvalidArgument>([&] { Logs({{"a", Loss::of(own.x.rows(0, 1)[0][0])}, {"a", own.x.rows(0, 1)[0][0]}}); },
                                {"two numbers are called `a`"});
  expect_error<InvalidArgument>(
      [&] {
        fit(own.model, own.optimizer, TrainingSteps{.train = own.train()}, data::from_tensor_slices(own.x).batch(8),
            {.verbose = false});
      },
      {"training step takes 2 fields", "has 1"});
  Sequential unbuilt{Dense(1)};
  SGD optimizer;
  const auto step = [&](Tensor x, Tensor, Tensor) { return Logs{{"loss", Loss::mean(unbuilt(x))}}; };
  const auto two_inputs = data::from_tensor_slices(own.x, own.x, own.y).batch(16);
  expect_error<InvalidArgument>([&] { fit(unbuilt, optimizer, step, two_inputs, {.verbose = false}); },
                                {"not built", "model.build"});
}

}  // namespace
}  // namespace gradus::own_steps_test
