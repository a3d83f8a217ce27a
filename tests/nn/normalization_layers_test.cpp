/// Normalising, disturbing and rearranging layers.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/nn/layers.h"
#include "gradus/nn/noise.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/rearranging.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "tests/errors.h"

namespace gradus::normalization_layers_test {
namespace {

Tensor noise_of(const Shape& shape) { return random::normal(shape, {.mean = 1, .dtype = f64, .seed = 1}); }

/// Gives every variable of a layer numbers of its own.
void disturb(const Module& layer) {
  std::uint64_t seed = 1;
  for (const Variable& variable : layer.variables())
    const_cast<Variable&>(variable).assign(
        random::uniform(variable.shape(), {.low = 0.5, .dtype = f64, .seed = seed++}));
}

TEST(LayerNormalization, IsTheOp) {
  const LayerNormalization layer;
  const Tensor x = noise_of({4, 3, 5});
  EXPECT_LT(max_abs_difference(layer(x), (x - reduce_mean(x, {.axis = {-1}, .keepdims = true})) /
                                             sqrt(reduce_variance(x, {.axis = {-1}, .keepdims = true}) + 1e-3)),
            1e-14);
  disturb(layer);
  const Variables v = layer.variables();
  EXPECT_EQ(v[0].name(), "layer_normalization/gamma");
  EXPECT_TRUE(bitwise_equal(layer(x), layer_normalization(x, {.scale = v[0], .offset = v[1]})));
  const LayerNormalization planes({.center = false, .axis = {1, 2}, .name = "planes"});
  planes(x);
  EXPECT_EQ(planes.variables()[0].shape(), (Shape{3, 5}));
  EXPECT_EQ(planes.variables()[0].name(), "planes/gamma");
  expect_says(error_of([] { LayerNormalization()(zeros({2, 3}, i32)); }), "floats");
  expect_says(error_of([] {
                LayerNormalization layer;
                layer.build({f32, {any_size, any_size}});
              }),
              "must be known");
}

TEST(RMSNormalization, IsTheOp) {
  const RMSNormalization layer;
  const Tensor x = noise_of({4, 5});
  layer(x);
  disturb(layer);
  EXPECT_TRUE(bitwise_equal(layer(x), rms_normalization(x, {.scale = layer.variables()[0], .epsilon = 1e-6})));
}

TEST(GroupNormalization, IsTheOp) {
  const GroupNormalization layer(3), each(-1);
  const Tensor x = noise_of({2, 4, 6});
  layer(x);
  disturb(layer);
  const Variables v = layer.variables();
  EXPECT_TRUE(bitwise_equal(layer(x), group_normalization(x, 3, {.scale = v[0], .offset = v[1]})));
  EXPECT_LT(max_abs_difference(each(x), instance_normalization(x)), 1e-14);
  expect_says(error_of([&] { GroupNormalization(4)(x); }), "do not divide");
}

TEST(UnitNormalization, GivesUnitLengths) {
  EXPECT_LT(max_abs_difference(norm(UnitNormalization()(noise_of({3, 4})), {.axis = {1}}), ones({3}, f64)), 1e-14);
}

TEST(BatchNormalization, WithoutScaleOrOffset) {
  const BatchNormalization layer({.center = false});
  const Tensor x = noise_of({4, 5});
  layer(x);
  EXPECT_EQ(layer.trainable_variables().size(), 1u);
  EXPECT_EQ(layer.trainable_variables()[0].name(), "batch_normalization/gamma");
}

TEST(SpatialDropout, DropsWholeChannels) {
  set_seed(1);
  const Tensor y = SpatialDropout1D(0.5)(ones({10, 7, 20}), training);
  EXPECT_TRUE(bitwise_equal(reduce_max(y, {.axis = {1}}), reduce_min(y, {.axis = {1}})));
  EXPECT_EQ(reduce_max(y).item(), 2);
  EXPECT_EQ(reduce_min(y).item(), 0);
  const Tensor image = SpatialDropout2D(0.5)(ones({10, 3, 4, 20}), training);
  EXPECT_TRUE(bitwise_equal(reduce_max(image, {.axis = {1, 2}}), reduce_min(image, {.axis = {1, 2}})));
  expect_says(error_of([] { SpatialDropout1D(0.5)(ones({2, 3}), training); }), "[batch, time, channels]");
  expect_says(error_of([] { SpatialDropout2D(1); }), "below 1");
}

TEST(Noise, HasItsMoments) {
  set_seed(1);
  const Tensor x = random::normal({40000}, {.seed = 3});
  const auto check = [&](const Module& layer, double mean, double deviation) {
    EXPECT_TRUE(bitwise_equal(layer(x), x));
    const Tensor y = layer(x, training);
    EXPECT_NEAR(reduce_mean(y).item(), mean, 0.03);
    EXPECT_NEAR(reduce_std(y).item(), deviation, 0.03);
  };
  check(GaussianNoise(2), 0, std::sqrt(5));
  check(GaussianDropout(0.5), 0, std::sqrt(2));
  check(AlphaDropout(0.3), 0, 1);
}

TEST(Rearranging, MovesElementsOfExamples) {
  const Tensor x = reshape(range(24), {2, 3, 4});
  EXPECT_TRUE(bitwise_equal(Reshape({2, -1})(x), reshape(x, {2, 2, 6})));
  EXPECT_TRUE(bitwise_equal(Reshape({4, 3})(x), reshape(x, {2, 4, 3})));
  EXPECT_TRUE(bitwise_equal(Permute({2, 1})(x), transpose(x)));
  EXPECT_TRUE(bitwise_equal(RepeatVector(3)(x[0])[1], stack({x[0][1], x[0][1], x[0][1]})));
  Sequential model{Reshape({2, 6}), Dense(3)};
  model.build({f32, {any_size, 3, 4}});
  EXPECT_EQ(model(cast(x, f32)).shape(), (Shape{2, 2, 3}));
  expect_says(error_of([&] { Reshape({5})(x); }), "does not fit");
  expect_says(error_of([&] { Reshape({-1, 5})(x); }), "does not fit");
  expect_says(error_of([] { Reshape({-1, -1}); }), "only one");
  expect_says(error_of([&] { Permute({0, 1})(x); }), "from 1");
  expect_says(error_of([&] { RepeatVector(2)(x); }), "[batch, features]");
}

TEST(Activations, AreTheirFormulas) {
  const Tensor x = constant({{-2.0, -0.5, 0.0, 0.5, 3.0}});
  const auto expect = [&](const Module& layer, std::vector<float> want) {
    EXPECT_LT(max_abs_difference(layer(x), from_values(want, {1, 5})), 1e-6);
  };
  expect(ReLU(), {0, 0, 0, 0.5f, 3});
  expect(ReLU({.max_value = 2, .negative_slope = 0.1, .threshold = 0.2}), {-0.22f, -0.07f, -0.02f, 0.5f, 2});
  expect(LeakyReLU(), {-0.6f, -0.15f, 0, 0.5f, 3});
  expect(ELU(2), {2 * std::expm1(-2.0f), 2 * std::expm1(-0.5f), 0, 0.5f, 3});
  EXPECT_TRUE(bitwise_equal(Softmax()(x), softmax(x)));
  const PReLU layer;
  expect(layer, {0, 0, 0, 0.5f, 3});
  EXPECT_EQ(layer.variables()[0].shape(), (Shape{5}));
  layer.variables()[0].assign(full({5}, 0.25));
  expect(layer, {-0.5f, -0.125f, 0, 0.5f, 3});
  EXPECT_EQ(
      [&] {
        PReLU shared({1});
        shared(x);
        return shared.variables()[0].shape();
      }(),
      (Shape{1}));
}

}  // namespace
}  // namespace gradus::normalization_layers_test
