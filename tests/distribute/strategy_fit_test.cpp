/// fit, evaluate and predict on strategies: equal bits for any number of replicas, also where a training goes on with
/// another one; losses and metrics of all rows; one loss scale.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "tests/distribute/trained.h"
#include "tests/test_directory.h"

namespace gradus::strategy_fit_test {
namespace {

struct Fitted {
  History history;
  Evaluation evaluation;
  Tensor prediction;
  std::vector<Tensor> variables;
};

Fitted fitted(const std::optional<Strategy>& strategy, FitOptions options = {}) {
  set_seed(5);
  const Tensor labels = random::integers({90}, {.high = 3, .seed = 6});
  const Tensor x = random::normal({90, 5}, {.seed = 7}) + 4 * one_hot(labels, 5);
  const auto dataset = data::from_tensor_slices(x, labels).shuffle(90, {.seed = 8}).batch(25);  // 25, 25, 25, 15
  Sequential model{Dense(12, relu, {.kernel_regularizer = regularizers::l2(1e-3)}), BatchNormalization(), Dropout(0.2),
                   Dense(3)};
  Adam optimizer({.learning_rate = 1e-2, .global_clipnorm = 1});
  const SparseCategoricalCrossentropy loss(from_logits);
  options.epochs = 3;
  options.metrics = {SparseCategoricalAccuracy()};
  options.validation = dataset;
  options.strategy = strategy;
  options.verbose = false;
  Fitted made{.history = fit(model, optimizer, loss, dataset, options)};
  made.evaluation = evaluate(model, loss, dataset, {.metrics = {SparseCategoricalAccuracy()}, .strategy = strategy});
  made.prediction = predict(model, data::from_tensor_slices(x).batch(25), {.strategy = strategy});
  for (const Variable& v : model.variables() + optimizer.variables()) made.variables.push_back(v.value());
  return made;
}

void expect_same(const Fitted& a, const Fitted& b, const std::string& what) {
  EXPECT_EQ(a.history.loss, b.history.loss) << what;
  EXPECT_EQ(a.history.validation_loss, b.history.validation_loss) << what;
  EXPECT_EQ(a.history["sparse_categorical_accuracy"], b.history["sparse_categorical_accuracy"]) << what;
  EXPECT_EQ(a.evaluation.loss, b.evaluation.loss) << what;
  EXPECT_TRUE(bitwise_equal(a.prediction, b.prediction)) << what;
  ASSERT_EQ(a.variables.size(), b.variables.size());
  for (std::size_t i = 0; i < a.variables.size(); ++i)
    EXPECT_TRUE(bitwise_equal(a.variables[i], b.variables[i])) << what;
}

TEST(StrategyFit, HasTheSameBitsForAnyNumberOfReplicas) {
  for (const std::int64_t micro_batch : {0, 3}) {
    const auto with = [&](int replicas) {
      return fitted(MirroredStrategy({.devices = devices(replicas), .micro_shards = 4}), {.micro_batch = micro_batch});
    };
    const Fitted one = with(1);
    expect_same(one, with(2), "2 replicas");
    expect_same(one, with(4), "4 replicas");
    EXPECT_LT(one.history.loss.back(), one.history.loss.front());
  }
}

TEST(StrategyFit, OneShardIsNearlyTheFitWithoutAStrategy) {
  const Fitted plain = fitted({}), one = fitted(DefaultStrategy());
  for (std::size_t i = 0; i < plain.history.loss.size(); ++i)
    EXPECT_NEAR(plain.history.loss[i], one.history.loss[i], 1e-5 * plain.history.loss[i]);
  EXPECT_EQ(plain.history["sparse_categorical_accuracy"], one.history["sparse_categorical_accuracy"]);
  EXPECT_NEAR(plain.evaluation.loss, one.evaluation.loss, 1e-5);
  EXPECT_LT(max_abs_difference(plain.prediction, one.prediction), 1e-4);
}

TEST(StrategyFit, MetricsAndLossesAreOfAllRows) {
  const Tensor x = random::normal({37, 4}, {.seed = 1}), y = random::normal({37, 2}, {.seed = 2});
  const auto dataset = data::from_tensor_slices(x, y).batch(16);
  Sequential model{Dense(2)};
  model.build({f32, {any_size, 4}});
  const auto evaluated = [&](const std::optional<Strategy>& strategy) {
    return evaluate(model, MeanSquaredError(), dataset, {.metrics = {MeanAbsoluteError()}, .strategy = strategy});
  };
  const Evaluation plain = evaluated({}), divided = evaluated(MirroredStrategy({.devices = devices(3)}));
  EXPECT_NEAR(plain.loss, divided.loss, 1e-6);
  EXPECT_NEAR(plain.metrics[0].second, divided.metrics[0].second, 1e-6);
}

/// A training that goes on with another number of replicas.
TEST(StrategyFit, GoesOnWithAnotherNumberOfReplicas) {
  const Tensor x = random::normal({60, 4}, {.seed = 1}), y = random::normal({60, 2}, {.seed = 2});
  const auto fitted_to = [&](int epochs, int replicas, const std::filesystem::path& folder) {
    set_seed(3);
    Sequential model{Dense(8, tanh), BatchNormalization(), Dropout(0.3), Dense(2)};
    Adam optimizer({.learning_rate = 1e-2});
    fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, y).shuffle().batch(16),
        {.epochs = epochs,
         .checkpoints = {.directory = folder},
         .strategy = MirroredStrategy({.devices = devices(replicas), .micro_shards = 4}),
         .verbose = false});
    return values_of(model.variables() + optimizer.variables(), 0);
  };
  const TestDirectory whole("strategy_whole"), parted("strategy_parted");
  const Trained undisturbed = fitted_to(6, 1, whole.path());
  fitted_to(2, 4, parted.path());
  fitted_to(4, 2, parted.path());
  expect_same_bits(undisturbed, fitted_to(6, 3, parted.path()), "1 replica, or 4, 2 and 3");
}

/// One NaN anywhere skips the step everywhere.
TEST(StrategyFit, AgreesOnTheLossScale) {
  set_seed(1);
  Sequential model({Dense(4, relu), Dense(1, linear, {.dtype = f32})}, {.policy = mixed_float16});
  SGD optimizer({.learning_rate = 0.1});
  const MirroredStrategy strategy({.devices = devices(2), .micro_shards = 4});
  const auto step = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    const Loss loss = MeanSquaredError()(y, model(x, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  const Tensor x = random::normal({8, 3}, {.seed = 1}), y = random::normal({8, 1}, {.seed = 2});
  strategy.run(step, x, y);
  const std::int64_t skipped = optimizer.skipped_steps();  // while the scale is too large for this model
  const Tensor before = model.trainable_variables()[0].value();
  const Tensor nan = concat({y.rows(0, 7), fill({1, 1}, std::nan(""), f32)}, 0);
  strategy.run(step, x, nan);
  EXPECT_TRUE(bitwise_equal(before, model.trainable_variables()[0].value()));
  EXPECT_EQ(optimizer.skipped_steps(), skipped + 1);
}

}  // namespace
}  // namespace gradus::strategy_fit_test
