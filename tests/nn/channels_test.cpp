/// Channels that are taken out: what is left computes what the masked model does, and is as small as it should be.
#include "gradus/nn/channels.h"
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::channels_test {
namespace {

/// Every variable random, so that no bias or statistic is 0 by chance.
void fill_randomly(const Sequential& model, std::uint64_t seed) {
  for (Variable& variable : model.variables()) {
    const bool positive = variable.name().ends_with("variance");
    const Tensor drawn = positive ? random::uniform(variable.shape(), {.low = 0.5, .high = 2, .seed = seed})
                                  : random::normal(variable.shape(), {.stddev = 0.5, .seed = seed});
    variable.assign(cast(drawn, variable.dtype()));
    ++seed;
  }
}

struct Case {
  const char* name;
  Sequential model;
  Shape input;
  std::int64_t masked;  // channels at one half
  std::vector<Shape> kernels;
};

ConvOptions same(Activation activation = linear) { return {.padding = Padding::same, .activation = activation}; }

std::vector<Case> cases() {
  return {
      {"dense", {Dense(8, relu), Dropout(0.5), Dense(6, tanh), Dense(3, softmax)}, {4, 5}, 7, {{5, 4}, {4, 3}, {3, 3}}},
      {"dense of sequences", {Dense(8, gelu), Dense(3)}, {2, 7, 5}, 4, {{5, 4}, {4, 3}}},
      {"convolutions",
       {Conv2D(8, 3, same(relu)), MaxPooling2D(), Conv2D(6, 3), BatchNormalization(), ReLU(), Flatten(), Dense(4, relu),
        Dense(2)},
       {2, 8, 8, 3},
       4 + 3 + 2,
       {{3, 3, 3, 4}, {3, 3, 4, 3}, {12, 2}, {2, 2}}},
      {"one dimension", {Conv1D(4, 3), GlobalAveragePooling1D(), Dense(2)}, {2, 9, 3}, 2, {{3, 3, 2}, {2, 2}}},
      {"transposed",
       {Conv2DTranspose(4, 3, {.strides = 2}), BatchNormalization(), Conv2DTranspose(2, 2)},
       {2, 4, 4, 3},
       2,
       {{3, 3, 2, 3}, {2, 2, 2, 2}}},
      {"depthwise",
       {Conv2D(4, 1), BatchNormalization(), ReLU(),
        DepthwiseConv2D(3, {.padding = Padding::same, .depth_multiplier = 2}), PReLU({1, 2}), ZeroPadding2D(1),
        Conv2D(3, 1), GlobalMaxPooling2D()},
       {2, 6, 6, 3},
       2,
       {{1, 1, 3, 2}, {1, 1, 4, 3}}},
      {"separable",
       {SeparableConv2D(6, 3, {.activation = relu}), AveragePooling2D(), SeparableConv2D(3, 2)},
       {2, 8, 8, 3},
       3,
       {{1, 1, 3, 3}, {1, 1, 3, 3}}},
      {"not centred", {Dense(8), BatchNormalization({.center = false}), Dense(2)}, {4, 5}, 4, {{5, 4}, {4, 2}}},
      {"not scaled", {Dense(8), BatchNormalization({.scale = false}), Dense(2)}, {4, 5}, 4, {{5, 4}, {4, 2}}},
      // 0 does not stay 0, or channels are mixed: left alone.
      {"sigmoid", {Dense(8, sigmoid), Dense(6, relu), Dense(2)}, {4, 5}, 3, {{5, 8}, {8, 3}, {3, 2}}},
      {"layer normalization", {Dense(8), LayerNormalization(), Dense(2)}, {4, 5}, 0, {{5, 8}, {8, 2}}},
      {"reshape", {Dense(8), Reshape({2, 4}), Dense(2)}, {4, 5}, 0, {{5, 8}, {4, 2}}},
      {"groups",
       {Conv2D(4, 1), Conv2D(4, 1, {.groups = 2}), Conv2D(4, 1)},
       {2, 4, 4, 3},
       0,
       {{1, 1, 3, 4}, {1, 1, 2, 4}, {1, 1, 4, 4}}},
      // A Sequential within is what it holds, at its beginning, its end and deeper.
      {"inner", {Sequential{Dense(8), Dense(4)}, Dense(2)}, {4, 5}, 6, {{5, 4}, {4, 2}, {2, 2}}},
      {"deep",
       {Conv2D(8, 3, same()), Sequential{BatchNormalization(), Sequential{ReLU(), Flatten()}, Dense(4, relu)},
        Dense(2)},
       {2, 4, 4, 3},
       4 + 2,
       {{3, 3, 3, 4}, {64, 2}, {2, 2}}},
      {"inner that mixes", {Dense(8), Sequential{LayerNormalization()}, Dense(2)}, {4, 5}, 0, {{5, 8}, {8, 2}}},
  };
}

TEST(Channels, WhatIsLeftComputesTheSame) {
  for (const DType t : {f64, f32})
    for (Case& c : cases()) {
      c.model.build({t, c.input});
      fill_randomly(c.model, 7);
      EXPECT_EQ(prune_channels(c.model, 0.5), c.masked) << c.name;
      const Sequential smaller = remove_pruned_channels(c.model);
      const Tensor x = cast(random::normal(c.input, {.seed = 3}), t);
      const Tensor expected = c.model(x, inference), y = smaller(x, inference);
      ASSERT_EQ(y.spec(), expected.spec()) << c.name;
      EXPECT_LT(max_abs_difference(y, expected), t == f64 ? 1e-13 : 1e-5) << c.name;
      std::vector<Shape> kernels;
      for (const Variable& kernel : prunable_variables(smaller)) kernels.push_back(kernel.shape());
      EXPECT_EQ(kernels, c.kernels) << c.name;
      const bool fewer = smaller.variables().parameters() < c.model.variables().parameters();
      EXPECT_EQ(fewer, c.masked > 0) << c.name;
      for (std::size_t i = 0; i < smaller.variables().size(); ++i) {
        EXPECT_EQ(smaller.variables()[i].name(), c.model.variables()[i].name());
        EXPECT_EQ(smaller.variables()[i].dtype(), c.model.variables()[i].dtype());
        EXPECT_EQ(smaller.variables()[i].trainable(), c.model.variables()[i].trainable());
      }
    }
}

TEST(Channels, MaskedOnesStayZeroWhileTheModelTrainsOn) {
  Sequential model{Conv2D(6, 3), BatchNormalization(), ReLU(), Flatten(), Dense(8, relu), Dense(3)};
  model.build({f32, {any_size, 6, 6, 2}});
  fill_randomly(model, 5);
  EXPECT_EQ(prune_channels(model, 0.5), 3 + 4);
  const Tensor x = random::normal({40, 6, 6, 2}, {.seed = 1}), y = random::integers({40}, {.high = 3, .seed = 2});
  Adam optimizer({.learning_rate = 0.05, .weight_decay = 0.01});
  const auto data = data::from_tensor_slices(x, y).batch(8);
  fit(model, optimizer, SparseCategoricalCrossentropy(from_logits), data, {.epochs = 3, .verbose = false});
  const Sequential smaller = remove_pruned_channels(model);
  EXPECT_LT(max_abs_difference(smaller(x, inference), model(x, inference)), 1e-4);
  EXPECT_EQ(smaller.variables().parameters(), 3 * 3 * 2 * 3 + 3 + 4 * 3 + 16 * 3 * 4 + 4 + 4 * 3 + 3);
  for (const Variable& variable : smaller.variables()) EXPECT_FALSE(variable.mask().defined()) << variable.name();

  Sequential trained = smaller;  // and what is left trains
  Adam second({.learning_rate = 0.01});
  const History history =
      fit(trained, second, SparseCategoricalCrossentropy(from_logits), data, {.epochs = 5, .verbose = false});
  EXPECT_LT(history.loss.back(), history.loss.front());
}

TEST(Channels, TakesOutWhatIsZeroAnyway) {
  Sequential model{Dense(4, relu), Dense(2)};
  model.build({f32, {any_size, 3}});
  fill_randomly(model, 5);
  const Variables variables = model.variables();
  variables[0].assign(variables[0].value() * constant({1.f, 0.f, 1.f, 0.f}));
  variables[1].assign(constant({1.f, 1.f, 1.f, -1.f}));
  const Sequential smaller = remove_pruned_channels(model);
  EXPECT_EQ(smaller.variables()[0].shape(), (Shape{3, 3})) << "relu(1) is not 0, relu(-1) is";
  const Tensor x = random::normal({5, 3}, {.seed = 1});
  EXPECT_LT(max_abs_difference(smaller(x), model(x)), 1e-6);
  variables[0].assign(zeros({3, 4}));
  variables[1].assign(zeros({4}));
  const Sequential least = remove_pruned_channels(model);
  EXPECT_EQ(least.variables()[0].shape(), (Shape{3, 1})) << "one channel stays";
  EXPECT_LT(max_abs_difference(least(x), model(x)), 1e-6);
}

TEST(Channels, KeepsPolicyNameAndFurtherMasks) {
  Sequential model({Dense(8, relu), Dense(4)}, {.policy = mixed_float16, .name = "net"});
  model.build({f32, {any_size, 6}});
  prune_to(model, 0.25);
  EXPECT_EQ(prune_channels(model, 0.5), 4);
  Sequential smaller = remove_pruned_channels(model);
  EXPECT_EQ(smaller.name(), "net");
  EXPECT_EQ(smaller.variables()[0].name(), "net/dense/kernel");
  EXPECT_EQ(smaller.loss_scale(), model.loss_scale());
  const Tensor x = random::normal({3, 6}, {.seed = 1});
  EXPECT_EQ(smaller(x).dtype(), f16);
  EXPECT_LT(max_abs_difference(smaller(x), model(x)), 1e-2);
  const Variables before = smaller.variables();
  for (Variable& variable : before) variable.assign(ones(variable.shape()));
  EXPECT_GT(sparsity(smaller), 0.01) << "single weights stay masked";
}

TEST(Channels, RefusesWhatItCannotDo) {
  Sequential model{Dense(4), Dense(2)};
  expect_says(error_of<InvalidArgument>([&] { prune_channels(model, 0.5); }), "not built");
  expect_says(error_of<InvalidArgument>([&] { remove_pruned_channels(model); }), "not built");
  model.build({f32, {any_size, 3}});
  for (const double share : {-0.1, 1.0, std::nan("")})
    expect_says(error_of<InvalidArgument>([&] { prune_channels(model, share); }), "share");
  EXPECT_EQ(prune_channels(model, 0.999), 3) << "one channel stays";
  EXPECT_EQ(remove_pruned_channels(model).variables()[0].shape(), (Shape{3, 1}));
}

}  // namespace
}  // namespace gradus::channels_test
