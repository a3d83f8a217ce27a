/// Freezing in fit and in files of Keras.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/gradus.h"
#include "gradus/nn/layer.h"
#include "tests/test_directory.h"

namespace gradus::freezing_test {
namespace {

Sequential small() { return Sequential{Dense(4, relu), BatchNormalization(), Dense(2)}; }

Dataset<2> rows() {
  return data::from_tensor_slices(random::normal({32, 3}, {.seed = 1}), random::normal({32, 2}, {.seed = 2})).batch(8);
}

Tensors values_of(const Module& module) {
  Tensors values;
  for (const Variable& variable : module.variables()) values.push_back(variable.value());
  return values;
}
bool are_same(const Tensors& a, const Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!bitwise_equal(a[i], b[i])) return false;
  return a.size() == b.size();
}

/// AdamW decays, and averages are written back: neither touches what is frozen.
TEST(FreezingInFit, HoldsWithinOneTrainingAndInTheNext) {
  Sequential model = small();
  AdamW optimizer({.learning_rate = 0.01, .weight_decay = 0.1, .use_ema = true, .ema_overwrite_frequency = 1});
  const MeanSquaredError loss;
  model.build({f32, {any_size, 3}});
  std::vector<Tensors> of_base, of_head;
  const Callback callback{.on_epoch_begin = [&](const EpochBegin& begin) {
    of_base.push_back(values_of(model.layer(1)));
    of_head.push_back(values_of(model.layer(2)));
    if (begin.epoch == 1) model.layer(1).set_trainable(false);
    if (begin.epoch == 3) model.layer(1).set_trainable(true);
  }};
  fit(model, optimizer, loss, rows(), {.epochs = 4, .callbacks = {callback}, .verbose = false});
  of_base.push_back(values_of(model.layer(1)));
  of_head.push_back(values_of(model.layer(2)));
  const auto moves = [](const std::vector<Tensors>& values, std::size_t epoch) {
    return !are_same(values[epoch], values[epoch + 1]);
  };
  EXPECT_TRUE(moves(of_base, 0));
  EXPECT_FALSE(moves(of_base, 1));
  EXPECT_FALSE(moves(of_base, 2));
  EXPECT_TRUE(moves(of_base, 3));
  for (std::size_t epoch = 0; epoch < 4; ++epoch) EXPECT_TRUE(moves(of_head, epoch)) << epoch;
  model.layer(0).set_trainable(false);
  model.layer(1).set_trainable(false);
  const Tensors before = values_of(model.layer(0)), normalizing = values_of(model.layer(1));
  fit(model, optimizer, loss, rows(), {.epochs = 1, .verbose = false});
  EXPECT_TRUE(are_same(values_of(model.layer(0)), before));
  EXPECT_TRUE(are_same(values_of(model.layer(1)), normalizing));
}

TEST(FreezingInFit, AModelAssignedByACallbackIsTrainedOn) {
  Sequential model = small(), other{Dense(4, tanh), BatchNormalization(), Dropout(0.5), Dense(2)};
  Adam optimizer;
  model.build({f32, {any_size, 3}});
  other.build({f32, {any_size, 3}});
  const Variables own = model.variables();
  const Callback callback{.on_epoch_begin = [&](const EpochBegin& begin) {
    if (begin.epoch == 1) model = other;
  }};
  fit(model, optimizer, MeanSquaredError(), rows(), {.epochs = 2, .callbacks = {callback}, .verbose = false});
  EXPECT_EQ(model.variables().cells(), own.cells());
  const Sequential trained = model;
  other = model;
  const Tensor x = random::normal({5, 3}, {.seed = 3});
  EXPECT_TRUE(bitwise_equal(model(x), other(x)));
  const Evaluation of_model = evaluate(model, MeanSquaredError(), rows());
  EXPECT_EQ(of_model.loss, evaluate(trained, MeanSquaredError(), rows()).loss);
}

TEST(FreezingInFiles, OfKerasComesBack) {
  const TestDirectory directory("freezing_keras");
  std::filesystem::create_directories(directory.path());
  const Tensor x = random::normal({6, 3}, {.mean = 2, .seed = 1});
  const auto file = directory.path() / "model.keras";
  for (const int frozen : {-1, 0, 1, 2}) {
    Sequential model{Dense(4, relu), BatchNormalization(), BatchNormalization({.center = false, .scale = false})};
    model(x, training);
    if (frozen >= 0) model.layer(static_cast<std::size_t>(frozen)).set_trainable(false);
    save_model(file, model);
    Sequential loaded = load_model(file);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(loaded.layer(i).layer_behind().is_trainable(), static_cast<int>(i) != frozen) << i << ' ' << frozen;
    EXPECT_TRUE(bitwise_equal(loaded(x, training), model(x, training))) << frozen;
    loaded.set_trainable(true);
    EXPECT_EQ(loaded.trainable_variables().size(), 4u);
  }
}

}  // namespace
}  // namespace gradus::freezing_test
