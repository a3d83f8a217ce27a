/// Penalties and masks in fit and evaluate: Keras's numbers, and parts of a batch that are the whole batch.
#include <gtest/gtest.h>
#include "gradus/nn/activity_regularization.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/recurrent.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"
#include "tests/errors.h"
#include "tests/nn/keras_values.h"

namespace gradus::penalties_test {
namespace {

using regularizers::L1, regularizers::L1L2, regularizers::L2;

Sequential penalized() {
  return {Dense(5, tanh,
                {.kernel_regularizer = L2(0.03125),
                 .bias_regularizer = L1(0.015625),
                 .activity_regularizer = L1L2(0.0078125, 0.03125)}),
          ActivityRegularization({.l1 = 0.015625, .l2 = 0.0625}),
          Dense(3, linear, {.kernel_regularizer = L1L2(0.0625, 0.125)})};
}
Sequential tagger() { return {Embedding(9, 4, {.mask_zero = true}), LSTM(4, {.return_sequences = true}), Dense(3)}; }

template <class L> void check_fit(const std::string& name, Sequential model, const L& loss, std::int64_t batch) {
  const KerasValues keras(name);
  keras.build(model, f64);
  const auto dataset = data::from_tensor_slices(keras["x"], keras["y"]).batch(batch);
  EXPECT_NEAR(evaluate(model, loss, dataset).loss, keras["evaluate"].item(), 1e-12);
  SGD optimizer({.learning_rate = 0.125, .momentum = 0.5});
  const History history = fit(model, optimizer, loss, dataset, {.epochs = 3, .verbose = false});
  for (std::size_t epoch = 0; epoch < 3; ++epoch)
    EXPECT_NEAR(history.loss[epoch], keras["loss"][static_cast<std::int64_t>(epoch)].item(), 1e-12) << epoch;
  for (std::size_t i = 0; i < model.variables().size(); ++i)
    EXPECT_LE(max_abs_difference(model.variables()[i], keras["after" + std::to_string(i)]), 1e-12) << i;
}

TEST(FitPenalties, AreKeras) { check_fit("fit_penalties", penalized(), MeanSquaredError(), 4); }
TEST(FitMasks, AreKeras) { check_fit("fit_mask", tagger(), SparseCategoricalCrossentropy(from_logits), 8); }

struct Weighted {
  Tensor x = random::normal({22, 4}, {.dtype = f64, .seed = 1}), y = random::normal({22, 3}, {.dtype = f64, .seed = 2});
  Tensor weight = where(range(22) < 6, zeros({22}, f64), random::uniform({22}, {.dtype = f64, .seed = 3}));
  Dataset<3> dataset = data::from_tensor_slices(x, y, weight).batch(22);
};

/// Weighted examples, some parts of weight 0: penalties on activities go by rows, those on variables count once.
TEST(FitPenalties, OfPartsAreThoseOfTheWhole) {
  const auto trained = [](std::int64_t micro_batch) {
    set_seed(3);
    Sequential model = penalized();
    model.set_policy({f64, f64});
    Adam optimizer({.learning_rate = 0.05, .global_clipnorm = 0.5});
    const History history = fit(model, optimizer, MeanSquaredError(), Weighted().dataset,
                                {.epochs = 3, .sample_weight = true, .micro_batch = micro_batch, .verbose = false});
    return std::pair(std::move(model), history.loss);
  };
  const auto [whole, losses] = trained(0);
  for (const std::int64_t rows : {22, 7, 5}) {
    const auto [parts, of_parts] = trained(rows);
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(of_parts[i], losses[i], 1e-12) << rows;
    for (std::size_t i = 0; i < whole.variables().size(); ++i)
      EXPECT_LE(max_abs_difference(whole.variables()[i], parts.variables()[i]), 1e-12) << rows;
  }
}

TEST(FitMasks, OfPartsAreThoseOfTheWhole) {
  const KerasValues keras("fit_mask");
  const auto trained = [&](std::int64_t micro_batch) {
    Sequential model = tagger();
    keras.build(model, f64);
    SGD optimizer({.learning_rate = 0.125});
    fit(model, optimizer, SparseCategoricalCrossentropy(from_logits),
        data::from_tensor_slices(keras["x"], keras["y"]).batch(8),
        {.epochs = 2, .micro_batch = micro_batch, .verbose = false});
    return model;
  };
  const Sequential whole = trained(0), parts = trained(3);
  for (std::size_t i = 0; i < whole.variables().size(); ++i)
    EXPECT_LE(max_abs_difference(whole.variables()[i], parts.variables()[i]), 1e-12);
}

/// Metrics see the mask, and weights of rows hold besides it.
TEST(FitMasks, MetricsAndWeights) {
  const KerasValues keras("fit_mask");
  Sequential model = tagger();
  keras.build(model, f64);
  const SparseCategoricalCrossentropy loss(from_logits);
  const auto data = data::from_tensor_slices(keras["x"], keras["y"]).batch(8);
  const Tensor y = keras["y"], prediction = model(keras["x"]), mask = cast(model.compute_mask(keras["x"]), f64);
  const Evaluation plain = evaluate(model, loss, data, {.metrics = {SparseCategoricalAccuracy()}});
  EXPECT_NEAR(plain.loss, loss(y, prediction, mask).item(), 1e-12);
  const Tensor right = cast(equal(cast(argmax(prediction), y.dtype()), y), f64);
  EXPECT_NEAR(plain.metrics[0].second, (reduce_sum(right * mask) / reduce_sum(mask)).item(), 1e-12);
  const Tensor weight = range(8, f64);
  const Evaluation weighted =
      evaluate(model, loss, data::from_tensor_slices(keras["x"], y, weight).batch(8), {.sample_weight = true});
  EXPECT_NEAR(weighted.loss, loss(y, prediction, mask * expand_dims(weight, -1)).item(), 1e-12);
}

TEST(FitMasks, ALossOfOnesOwnNeedsAWeight) {
  const KerasValues keras("fit_mask");
  Sequential model = tagger();
  const auto mine = [](const Tensor& y, const Tensor& prediction) {
    return SparseCategoricalCrossentropy(from_logits)(y, prediction);
  };
  const auto data = data::from_tensor_slices(keras["x"], keras["y"]).batch(8);
  expect_says(error_of<InvalidArgument>([&] { evaluate(model, mine, data); }), "the prediction has a mask");
}

/// A penalty of another layer leaves the gradient of a table one of lookups: rows that were not read neither move nor
/// decay.
TEST(FitPenalties, OfPartsKeepLazyStepsOfTables) {
  for (const std::int64_t rows : {40, 6000}) {
    set_seed(3);
    Sequential model{Embedding(rows, 4), Flatten(), Dense(1, linear, {.kernel_regularizer = regularizers::L2(0.1)})};
    model.build({i32, {any_size, 2}});
    const Tensor before = model.trainable_variables()[0].value();
    AdamW optimizer({.learning_rate = 0.1, .weight_decay = 0.5, .lazy = true});
    const auto data = data::from_tensor_slices(constant({{1, 2}, {2, 3}, {3, 1}, {1, 1}}), ones({4, 1})).batch(4);
    fit(model, optimizer, MeanSquaredError(), data, {.epochs = 2, .micro_batch = 2});
    const Tensor after = model.trainable_variables()[0].value();
    EXPECT_FALSE(bitwise_equal(after.rows(1, 4), before.rows(1, 4)));
    EXPECT_TRUE(bitwise_equal(after.rows(4, rows), before.rows(4, rows))) << rows;
  }
}

TEST(FitPenalties, InNarrowTypes) {
  for (const Policy& policy : {mixed_bfloat16, mixed_float16}) {
    set_seed(3);
    Sequential model = penalized();
    model.set_policy(policy);
    SGD optimizer({.learning_rate = 0.05});
    const Tensor x = random::normal({16, 4}, {.seed = 1}), y = zeros({16, 3});
    const auto data = data::from_tensor_slices(x, y).batch(8);
    const History history = fit(model, optimizer, MeanSquaredError(), data, {.epochs = 20, .verbose = false});
    EXPECT_LT(history.loss.back(), 0.8 * history.loss.front());
    double penalties = 0;
    model(x);
    for (const Tensor& loss : model.losses()) penalties += loss.item();
    EXPECT_GT(history.loss.front(), penalties);
  }
}

}  // namespace
}  // namespace gradus::penalties_test
