/// Freezing: what is trained, what moves, in which order calls may come, and that compiled functions follow.
#include <gtest/gtest.h>
#include "gradus/base/rooms.h"
#include "gradus/function/variable_cell.h"
#include "gradus/gradus.h"
#include "gradus/nn/layer.h"
#include "tests/errors.h"

namespace freezing_test {
using namespace gradus;

Tensor noise(const Shape& shape, std::uint64_t seed) {
  return random::normal(shape, {.mean = 1, .stddev = 3, .seed = seed});
}

struct Net {
  Dense first{4, relu};
  BatchNormalization normalize{};
  Variable steps{zeros({}), "steps", {.trainable = false}};
  Variable shift{zeros({4}), "shift"};
  std::optional<Dense> extra{Dense(3)};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = normalize(first(x)) + shift + steps;
    return extra ? (*extra)(y) : y;
  }
};

/// One of each kind of layer that has variables which are none to be trained, within other layers.
std::vector<std::pair<std::string, Module>> modules() {
  return {{"batch_normalization", BatchNormalization()},
          {"spectral", SpectralNormalization(Dense(3))},
          {"normalization", Normalization()},
          {"sequential", Sequential{Dense(4), BatchNormalization(), Sequential{Dense(3), BatchNormalization()}}},
          {"model", Model<Net>()},
          {"model within", Sequential{Dense(4), Model<Net>()}},
          {"time_distributed", Sequential{Lambda([](Tensor x) { return expand_dims(x, 1); }),
                                          TimeDistributed(Sequential{Dense(3), BatchNormalization()})}},
          {"scaled", Sequential({Dense(4), BatchNormalization()}, {.policy = mixed_float16})}};
}

std::vector<bool> trainable_of(const Module& module) {
  std::vector<bool> all;
  for (const Variable& variable : module.variables()) all.push_back(variable.trainable());
  return all;
}

TEST(Freezing, WhatIsNotToBeTrainedNeverIs) {
  for (const auto& [name, made] : modules())
    for (const bool built_before : {true, false}) {
      const Tensor x = noise({6, 5}, 1);
      Module module = made, other = made;
      other(x);
      const std::vector<bool> first = trainable_of(other);
      if (built_before) module(x);
      module.set_trainable(false);
      module(x);
      EXPECT_EQ(module.trainable_variables().size(), 0u) << name;
      EXPECT_EQ(trainable_of(module), std::vector<bool>(first.size(), false)) << name;
      Module copy = module;  // copies are frozen, too
      EXPECT_EQ(copy.trainable_variables().size(), 0u) << name;
      for (Module* each : {&module, &copy}) {
        each->set_trainable(true);
        EXPECT_EQ(trainable_of(*each), first) << name;
      }
    }
}

/// As Keras 3, but that a layer unfrozen within a frozen one is trained.
TEST(Freezing, TheLastCallAboutALayerHolds) {
  Sequential model{Dense(3), BatchNormalization(), Sequential{Dense(2), BatchNormalization()}};
  model(noise({4, 5}, 1));
  const auto count = [&] { return model.trainable_variables().size(); };
  EXPECT_EQ(count(), 8u);
  model.layer(2).set_trainable(false);
  EXPECT_EQ(count(), 4u);
  model.set_trainable(true);
  EXPECT_EQ(count(), 8u);
  model.set_trainable(false);
  EXPECT_EQ(count(), 0u);
  model.layer(0).set_trainable(true);
  EXPECT_EQ(count(), 2u);
  model.set_trainable(true);
  model.variables()[0].set_trainable(false);
  EXPECT_EQ(count(), 7u);
  model.set_trainable(true);
  EXPECT_EQ(count(), 8u);
}

TEST(Freezing, OfWhatIsAddedAndMadeLater) {
  Sequential model{Dense(3)};
  model.set_trainable(false);
  model.add(BatchNormalization());
  model(noise({4, 5}, 1));
  EXPECT_EQ(model.trainable_variables().size(), 0u);
  Model<Net> net;
  net.set_trainable(false);
  net->extra.emplace(2);  // a new head
  net(noise({4, 5}, 1));
  EXPECT_EQ(net.trainable_variables().size(), 2u);
}

/// Nothing of it changes, and it is the same function in training and inference, but for what draws.
TEST(Freezing, AFrozenModelDoesNotMove) {
  for (const auto& [name, made] : modules()) {
    const Tensor x = noise({6, 5}, 2);
    Module module = made;
    module(x, training);
    module.set_trainable(false);
    Tensors before;
    for (const Variable& variable : module.variables()) before.push_back(variable.value());
    const auto f = function([&](Tensor in) { return module(in, training); });
    const Tensor want = module(x, inference);
    EXPECT_TRUE(bitwise_equal(module(x, training), want)) << name;
    EXPECT_TRUE(bitwise_equal(f(x), want)) << name;
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_TRUE(bitwise_equal(module.variables()[i].value(), before[i]))
          << name << ' ' << module.variables()[i].name();
  }
}

TEST(Freezing, DropoutStillDrops) {
  Sequential model{Dense(64), Dropout(0.5)};
  model(ones({1, 3}));
  model.set_trainable(false);
  EXPECT_FALSE(bitwise_equal(model(ones({1, 3}), training), model(ones({1, 3}), inference)));
}

TEST(Freezing, VariablesAloneLeaveBatchNormalizationInTraining) {
  BatchNormalization layer;
  const Tensor x = noise({6, 5}, 3);
  layer(x);
  for (Variable& variable : layer.variables()) variable.set_trainable(false);
  EXPECT_FALSE(bitwise_equal(layer(x, training), layer(x, inference)));
}

TEST(Freezing, AfterAFunctionWasTraced) {
  const Tensor x = noise({8, 5}, 4), y = noise({8, 3}, 5);
  Model<Net> model;
  model(x);
  SGD optimizer({.learning_rate = 0.01, .weight_decay = 0.1});
  optimizer.build(model.trainable_variables());
  const auto step = function([&] {
    GradientTape tape;
    optimizer.apply_gradients(tape.gradient(Loss::mean(square(model(x, training) - y)), model.trainable_variables()));
  });
  const auto moved = [&] {
    Tensors before;
    for (const Variable& variable : model.variables()) before.push_back(variable.value());
    step();
    std::vector<bool> all;
    for (std::size_t i = 0; i < before.size(); ++i)
      all.push_back(!bitwise_equal(model.variables()[i].value(), before[i]));
    return all;
  };
  // first/kernel, first/bias, gamma, beta, moving mean and variance, steps, shift, extra/kernel, extra/bias
  using Moved = std::vector<bool>;
  const Moved all{1, 1, 1, 1, 1, 1, 0, 1, 1, 1};
  EXPECT_EQ(moved(), all);
  model->normalize.set_trainable(false);
  EXPECT_EQ(moved(), (Moved{1, 1, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_NE(step.explain().retraces.back().reason.find("trainable"), std::string::npos)
      << step.explain().retraces.back().reason;
  model->first.kernel().set_trainable(false);
  EXPECT_EQ(moved(), (Moved{0, 1, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(step.explain().retraces.back().reason, "variable first/kernel was trainable, now it is not");
  model.set_trainable(true);
  EXPECT_EQ(moved(), all);
  const int variants = step.explain().variants;
  for (int i = 0; i < 20; ++i) {  // as of a discriminator: both ways stay compiled
    model->normalize.set_trainable(i % 2);
    EXPECT_EQ(moved(), i % 2 ? all : (Moved{1, 1, 0, 0, 0, 0, 0, 1, 1, 1})) << i;
  }
  EXPECT_EQ(step.explain().variants, variants);
  model->extra->set_trainable(false);
  EXPECT_EQ(moved(), (Moved{1, 1, 1, 1, 1, 1, 0, 1, 0, 0}));
}

TEST(Freezing, WithinATracedFunctionBelongsToIt) {
  const Tensor x = noise({8, 5}, 4);
  Sequential model{Dense(3), BatchNormalization()};
  model(x);
  const auto f = function([&] {
    model.set_trainable(false);
    const Tensor y = model(x, training);
    model.set_trainable(true);
    return y + static_cast<double>(model.trainable_variables().size());
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bitwise_equal(f(), model(x, inference) + 4));
  EXPECT_TRUE(f.explain().retraces.empty());
}

TEST(Freezing, PredictionsAreNotTracedAnew) {
  const Tensor x = noise({8, 5}, 4);
  Sequential model{Dense(3), BatchNormalization(), Dropout(0.5)};
  const auto f = function([&](Tensor in) { return model(in, inference); });
  f(x);
  model.set_trainable(false);
  f(x);
  model.set_trainable(true);
  f(x);
  EXPECT_TRUE(f.explain().retraces.empty());
}

TEST(Freezing, PenaltiesAreOfWhatIsTrained) {
  Sequential model{Dense(3, linear, {.kernel_regularizer = regularizers::L2(0.5)}), Dense(2)};
  const Tensor x = noise({4, 5}, 4);
  model(x);
  const auto f = function([&] { return model.losses().empty() ? fill({}, 0, f32) : model.losses()[0]; });
  EXPECT_GT(f().item(), 0);
  model.layer(0).set_trainable(false);
  EXPECT_TRUE(model.losses().empty());
  EXPECT_EQ(f().item(), 0);
  model.layer(0).set_trainable(true);
  EXPECT_GT(f().item(), 0);
}

TEST(Freezing, IsPartOfAssigning) {
  const Tensor x = noise({4, 5}, 4);
  Sequential a{Dense(3), BatchNormalization()}, b = a;
  a(x), b(x);
  const Variables own = a.variables();
  const auto f = function([&](Tensor in) { return a(in, training); });
  f(x);
  b.set_trainable(false);
  a = b;
  EXPECT_EQ(a.trainable_variables().size(), 0u);
  EXPECT_TRUE(bitwise_equal(f(x), b(x, inference)));
  b.set_trainable(true);
  a = b;
  EXPECT_EQ(a.trainable_variables().size(), 4u);
  EXPECT_FALSE(bitwise_equal(f(x), b(x, inference)));
  Sequential copy = a;  // copies of one setup, so values alone are written
  copy.set_trainable(false);
  a = copy;
  EXPECT_TRUE(bitwise_equal(f(x), copy(x, inference)));
  EXPECT_EQ(a.variables().cells(), own.cells());
  a.set_trainable(true);
  EXPECT_EQ(a.trainable_variables().size(), 4u);
}

}  // namespace freezing_test
