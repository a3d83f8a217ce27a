/// fit, evaluate, predict: what is learnt, what is recorded, in which order, and what is refused.
#include "gradus/train/fit.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "tests/errors.h"

namespace gradus::fit_test {
namespace {

/// Which of four numbers is the largest.
struct Toy {
  Tensor x = random::normal({300, 4}, {.seed = 1});
  Tensor y = argmax(x);
  Dataset<2> training = data::from_tensor_slices(x.rows(0, 230), y.rows(0, 230)).shuffle({.seed = 3}).batch(32);
  Dataset<2> validation = data::from_tensor_slices(x.rows(230, 300), y.rows(230, 300)).batch(32);
  SparseCategoricalCrossentropy loss{from_logits};

  static Sequential model() {
    set_seed(5);
    Sequential made{Dense(16, relu), Dense(4)};
    made.build({f32, {any_size, 4}});
    return made;
  }
};

void expect_same(const Variables& a, const Variables& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bitwise_equal(a[i].value(), b[i].value())) << a[i].name();
}

TEST(Fit, LearnsAndRemembers) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer({.learning_rate = 0.02});
  const History history =
      fit(model, optimizer, toy.loss, toy.training,
          {.epochs = 12, .metrics = {SparseCategoricalAccuracy()}, .validation = toy.validation, .verbose = false});
  ASSERT_EQ(history.loss.size(), 12u);
  EXPECT_EQ(history.seconds.size(), 12u);
  EXPECT_LT(history.loss.back(), history.loss.front() / 3);
  EXPECT_GT(history["sparse_categorical_accuracy"].back(), 0.85);
  EXPECT_GT(history["validation_sparse_categorical_accuracy"].back(), 0.8);
  EXPECT_EQ(optimizer.iterations(), 12 * 8);
  const Evaluation evaluation = evaluate(model, toy.loss, toy.validation, {.metrics = {SparseCategoricalAccuracy()}});
  EXPECT_EQ(evaluation.loss, history.validation_loss.back());
  EXPECT_EQ(evaluation["sparse_categorical_accuracy"], history["validation_sparse_categorical_accuracy"].back());
  expect_says(error_of([&] { history["sparse_categorical_acuracy"]; }), "sparse_categorical_accuracy");
  EXPECT_EQ(evaluation["loss"], evaluation.loss);
  expect_says(error_of([&] { evaluation["los"]; }), "no metric");
}

TEST(Fit, IsTheLoopByHand) {
  const Toy toy;
  Sequential fitted = Toy::model(), by_hand = Toy::model();
  Adam one({.learning_rate = 0.02}), other({.learning_rate = 0.02});
  const History history = fit(fitted, one, toy.loss, toy.training, {.epochs = 3, .verbose = false});
  for (int epoch = 0; epoch < 3; ++epoch) {
    double sum = 0;
    for (auto [x, y] : toy.training.epoch(epoch)) {
      GradientTape tape;
      const Loss loss = toy.loss(y, by_hand(x, training));
      other.apply_gradients(tape.gradient(loss, by_hand.trainable_variables()));
      sum += loss.sum().item();
    }
    EXPECT_NEAR(history.loss[static_cast<std::size_t>(epoch)], sum / 230, 1e-6);
  }
  expect_same(fitted.variables(), by_hand.variables());
  expect_same(one.variables(), other.variables());
}

TEST(Fit, GoesOnWhereItStopped) {
  const Toy toy;
  Sequential whole = Toy::model(), parts = Toy::model();
  Adam one, other;
  fit(whole, one, toy.loss, toy.training, {.epochs = 4, .verbose = false});
  fit(parts, other, toy.loss, toy.training, {.epochs = 1, .verbose = false});
  const History rest = fit(parts, other, toy.loss, toy.training, {.epochs = 4, .initial_epoch = 1, .verbose = false});
  EXPECT_EQ(rest.loss.size(), 3u);
  expect_same(whole.variables(), parts.variables());
}

TEST(Fit, EagerlyAndCompiledAlike) {
  const Toy toy;
  Sequential compiled = Toy::model(), eager = Toy::model();
  Adam one, other;
  const History a = fit(compiled, one, toy.loss, toy.training,
                        {.epochs = 2, .metrics = {SparseCategoricalAccuracy()}, .verbose = false});
  const History b =
      fit(eager, other, toy.loss, toy.training,
          {.epochs = 2, .metrics = {SparseCategoricalAccuracy()}, .function = {.run_eagerly = true}, .verbose = false});
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a["sparse_categorical_accuracy"], b["sparse_categorical_accuracy"]);
  expect_same(compiled.variables(), eager.variables());
}

TEST(Fit, MicroBatchesTakeTheStepOfTheWholeBatch) {
  const Toy toy;
  Sequential whole = Toy::model(), parts = Toy::model();
  SGD one({.learning_rate = 0.1}), other({.learning_rate = 0.1});
  const History a = fit(whole, one, toy.loss, toy.training,
                        {.epochs = 2, .metrics = {SparseCategoricalAccuracy()}, .verbose = false});
  const History b = fit(parts, other, toy.loss, toy.training,
                        {.epochs = 2, .metrics = {SparseCategoricalAccuracy()}, .micro_batch = 10, .verbose = false});
  EXPECT_NEAR(a.loss[1], b.loss[1], 1e-5);
  EXPECT_EQ(a["sparse_categorical_accuracy"], b["sparse_categorical_accuracy"]);
  EXPECT_EQ(other.iterations(), 16);
  for (std::size_t i = 0; i < whole.variables().size(); ++i)
    EXPECT_LT(max_abs_difference(whole.variables()[i], parts.variables()[i]), 1e-5);
}

TEST(Fit, SampleWeights) {
  const Tensor x = random::normal({64, 3}, {.seed = 1}), y = reduce_sum(x, {.axis = {1}, .keepdims = true});
  const Tensor weight = cast(random::uniform({64}, {.seed = 2}) < 0.5, f32);
  const Tensor spoilt = where(expand_dims(weight, 1) > 0, y, 100.0);
  const auto weighted = data::from_tensor_slices(x, spoilt, weight).batch(16);
  Sequential model{Dense(1)};
  SGD optimizer({.learning_rate = 0.2});
  const History history = fit(model, optimizer, MeanSquaredError(), weighted,
                              {.epochs = 60,
                               .metrics = {MeanAbsoluteError()},
                               .validation = weighted,
                               .sample_weight = true,
                               .verbose = false});
  EXPECT_LT(history.loss.back(), 1e-4);
  EXPECT_LT(history["validation_mean_absolute_error"].back(), 1e-2);
  EXPECT_GT(evaluate(model, MeanSquaredError(), data::from_tensor_slices(x, spoilt).batch(16)).loss, 1000);
  expect_says(error_of([&] { fit(model, optimizer, MeanSquaredError(), weighted, {.verbose = false}); }),
              "sample_weight = true");
  expect_says(error_of([&] {
                fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(x, y).batch(16),
                    {.sample_weight = true, .verbose = false});
              }),
              "sample_weight");
  const auto plain = [](Tensor a, Tensor b) { return Loss::mean(square(a - b)); };
  expect_says(error_of([&] { fit(model, optimizer, plain, weighted, {.sample_weight = true, .verbose = false}); }),
              "sample_weight");
}

TEST(Fit, AnyCallableThatGivesALoss) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer;
  const auto penalised = [&](Tensor y, Tensor prediction) {
    Loss loss = toy.loss(y, prediction);
    for (const Variable& v : model.trainable_variables()) loss = loss + 1e-2 * reduce_sum(square(v));
    return loss;
  };
  const History history = fit(model, optimizer, penalised, toy.training, {.epochs = 1, .verbose = false});
  EXPECT_GT(history.loss[0], evaluate(model, toy.loss, toy.training).loss);
}

TEST(Fit, Callbacks) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer;
  std::vector<std::int64_t> steps;
  std::vector<int> epochs;
  double of_epoch = 0, weight = 0;
  const Callback own{.on_epoch_end =
                         [&](EpochLog log) {
                           epochs.push_back(log.epoch);
                           if (log.epoch == 0) { EXPECT_NEAR(log.loss, of_epoch / weight, 1e-6); }
                           EXPECT_EQ(log.metrics.size(), 2u);
                           EXPECT_EQ(log.metrics[1].first, "validation_sparse_categorical_accuracy");
                           EXPECT_TRUE(log.validation_loss.has_value());
                           EXPECT_EQ(&log.optimizer, &optimizer);
                         },
                     .on_step_end =
                         [&](StepLog log) {
                           steps.push_back(log.step);
                           of_epoch += log.loss.sum().item();
                           weight += log.loss.weight().item();
                           log.stop = log.step == 11;
                         }};
  const History history = fit(model, optimizer, toy.loss, toy.training,
                              {.epochs = 5,
                               .metrics = {SparseCategoricalAccuracy()},
                               .validation = toy.validation,
                               .callbacks = {own},
                               .verbose = false});
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(epochs, (std::vector<int>{0, 1}));
  EXPECT_EQ(history.loss.size(), 2u);
}

TEST(Fit, EarlyStopping) {
  const Toy toy;
  Sequential model = Toy::model();
  SGD optimizer({.learning_rate = 0.5});
  std::vector<double> watched;
  Tensors first_weights;
  Callback spoil{.on_epoch_end = [&](EpochLog log) {
    watched.push_back(*log.validation_loss);
    if (log.epoch == 2)
      for (const Variable& v : log.model.variables()) first_weights.push_back(v.value());
    if (log.epoch == 2) log.optimizer.set_learning_rate(0);  // from here on it gets worse
  }};
  spoil.on_epoch_begin = [&](EpochBegin log) {
    for (Variable& v : log.model.variables())
      if (log.epoch > 2) v.assign(v.value() * -2);
  };
  const Callback stopping = early_stopping({.patience = 2, .restore_best_weights = true});
  const History history =
      fit(model, optimizer, toy.loss, toy.training,
          {.epochs = 50, .validation = toy.validation, .callbacks = {spoil, stopping}, .verbose = false});
  ASSERT_EQ(history.loss.size(), 5u);
  for (std::size_t i = 0; i < first_weights.size(); ++i)
    EXPECT_TRUE(bitwise_equal(model.variables()[i].value(), first_weights[i]));
  EXPECT_THROW(early_stopping({.patience = -1}), InvalidArgument);
}

TEST(Fit, ReadsTheDataInTheOrderOfItsEpoch) {
  const Toy toy;
  std::vector<std::vector<float>> seen;
  Sequential model{Dense(4)};
  SGD optimizer({.learning_rate = 0.0});
  const auto spy = [&](Tensor y, Tensor prediction) { return toy.loss(y, prediction); };
  for ([[maybe_unused]] auto [x, y] : toy.training) break;  // somebody read it before
  const History once = fit(model, optimizer, spy, toy.training, {.epochs = 1, .verbose = false});
  const History again = fit(model, optimizer, spy, toy.training, {.epochs = 1, .verbose = false});
  EXPECT_EQ(once.loss, again.loss);  // the same order of the same sums
}

TEST(Fit, OneProgramAStepForEveryBatchSize) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer;
  int traced = 0;
  const auto counting = [&](Tensor y, Tensor prediction) {
    ++traced;
    return toy.loss(y, prediction);
  };
  fit(model, optimizer, counting, toy.training, {.epochs = 3, .verbose = false});
  EXPECT_EQ(traced, 3) << "once with open sizes, and once with the sizes of each of the two batches";
}

TEST(Fit, TheScheduleMayBeReplacedAfterIt) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer;
  fit(model, optimizer, toy.loss, toy.training, {.epochs = 1, .verbose = false});
  optimizer.set_learning_rate(CosineDecay({.initial_learning_rate = 0.1, .decay_steps = 16}));
  EXPECT_NEAR(optimizer.learning_rate(), 0.05, 1e-9);
}

TEST(Fit, RefusesBadOptions) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer;
  const auto with = [&](FitOptions options) {
    options.verbose = false;
    return error_of<Error>([&] { fit(model, optimizer, toy.loss, toy.training, std::move(options)); });
  };
  expect_says(with({.epochs = -1}), "epochs");
  expect_says(with({.epochs = 1, .initial_epoch = 2}), "initial_epoch");
  expect_says(with({.micro_batch = -1}), "micro_batch");
  expect_says(with({.metrics = {MeanAbsoluteError(), MeanAbsoluteError()}}), "mean_absolute_error");
  expect_says(with({.validation = data::from_tensor_slices(toy.x, toy.y, toy.y).batch(3)}), "3 fields");
  expect_says(with({.function = {.disable = {"fusee"}}}), "fuse");
  EXPECT_EQ(optimizer.iterations(), 0);
  Sequential other = Toy::model();
  fit(other, optimizer, toy.loss, toy.training, {.verbose = false});
  expect_says(with({}), "rebind");
  Adam fresh;
  expect_says(
      error_of<InvalidArgument>([&] { fit(model, fresh, toy.loss, toy.training.repeat(), {.verbose = false}); }),
      "take");
  expect_says(error_of<DataError>([&] { fit(model, fresh, toy.loss, toy.training.take(0), {.verbose = false}); }),
              "empty");
  expect_says(error_of<DataError>([&] { evaluate(model, toy.loss, toy.training.take(0)); }), "empty");
  model.set_trainable(false);
  expect_says(error_of([&] { fit(model, fresh, toy.loss, toy.training, {.verbose = false}); }),
              "no variables to train");
}

TEST(Fit, LabelsOutsideTheClasses) {
  const Toy toy;
  Sequential model = Toy::model();
  Adam optimizer;
  const Tensor before = model.variables()[0];
  const auto spoilt = data::from_tensor_slices(toy.x, where(toy.y < 3, toy.y, 17)).batch(32);
  const std::string message =
      error_of([&] { fit(model, optimizer, toy.loss, spoilt, {.epochs = 1, .verbose = false}); });
  expect_says(message, "label");
  expect_says(message, "17");
  EXPECT_TRUE(bitwise_equal(model.variables()[0].value(), before));
}

TEST(Predict, InSlices) {
  const Toy toy;
  const Sequential model = Toy::model();
  const Tensor whole = model(toy.x, inference);
  for (std::int64_t size : {1000, 300, 128, 7})
    EXPECT_TRUE(bitwise_equal(predict(model, toy.x, {.batch_size = size}), whole)) << size;
  EXPECT_THROW(predict(model, toy.x, {.batch_size = 0}), InvalidArgument);
  EXPECT_THROW(predict(model, constant(1.0)), InvalidArgument);
}

}  // namespace
}  // namespace gradus::fit_test
