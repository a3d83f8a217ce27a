/// Policies: which types layers compute in and keep, loss scales of models and their copies, and what is refused.
#include <gtest/gtest.h>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/variable_cell.h"
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::policy_test {
namespace {

/// The dtypes that layers of a kind get and give, told by lambdas around them.
struct Seen {
  std::vector<DType> types;
  Lambda probe() {
    return Lambda([this](const Tensor& x) {
      types.push_back(x.dtype());
      return x;
    });
  }
};

TEST(Policy, LayersComputeNarrowAndKeepFloat) {
  for (const Policy& policy : {mixed_float16, mixed_bfloat16}) {
    Sequential model({Dense(8, relu), LayerNormalization(), Dense(3, linear, {.dtype = f32})}, {.policy = policy});
    const Tensor x = random::normal({4, 6}, {.seed = 1});
    EXPECT_EQ(model.layer(0)(x).dtype(), policy.compute);
    EXPECT_EQ(model(x).dtype(), f32);
    for (const Variable& variable : model.variables()) EXPECT_EQ(variable.dtype(), f32) << variable.name();
    EXPECT_EQ(model.loss_scale(), policy.scale_loss ? 32768 : 1);
  }
}

/// Each kind of layer with variables, on a narrow input that it casts itself.
TEST(Policy, EveryKindOfLayer) {
  const Tensor image = random::normal({2, 6, 6, 4}, {.seed = 2}), sequence = random::normal({2, 5, 4}, {.seed = 3});
  std::vector<std::pair<Module, Tensor>> cases;
  cases.emplace_back(Conv2D(3, 3), image);
  cases.emplace_back(DepthwiseConv2D(3), image);
  cases.emplace_back(SeparableConv2D(3, 3), image);
  cases.emplace_back(Conv2DTranspose(3, 3), image);
  cases.emplace_back(BatchNormalization(), image);
  cases.emplace_back(LayerNormalization(), sequence);
  cases.emplace_back(MultiHeadAttention(2, 3), sequence);
  cases.emplace_back(LSTM(3), sequence);
  cases.emplace_back(GRU(3), sequence);
  cases.emplace_back(PositionEmbedding(7), sequence);
  cases.emplace_back(PReLU(), sequence);
  cases.emplace_back(Embedding(9, 3), random::integers({2, 5}, {.high = 9, .seed = 4}));
  for (auto& [layer, x] : cases) {
    const Tensor wide = layer(x, training);
    Module narrow = layer;
    narrow.set_policy(mixed_bfloat16);
    const Tensor y = narrow(x, training);
    EXPECT_EQ(y.dtype(), bf16) << layer.name();
    for (const Variable& variable : narrow.variables()) EXPECT_EQ(variable.dtype(), f32) << variable.name();
    EXPECT_LT(max_abs_difference(cast(y, f32), wide), 0.05 * (1 + reduce_max(abs(wide)).item())) << layer.name();
    GradientTape tape;
    const Tensor loss = reduce_sum(cast(square(narrow(x, training)), f32));
    const Gradients gradients = tape.gradient(loss, narrow.trainable_variables());
    for (std::size_t i = 0; i < gradients.size(); ++i) EXPECT_EQ(gradients[i].dtype(), f32);
  }
}

TEST(Policy, ALayerMayHaveItsOwn) {
  Seen seen;
  Dense precise(4);
  precise.set_policy(float32);
  Sequential model({Dense(4), seen.probe(), std::move(precise), Sequential{Dense(2)}}, {.policy = mixed_float16});
  EXPECT_EQ(model(random::normal({2, 3})).dtype(), f16);
  EXPECT_EQ(model.layer(2)(random::normal({2, 4})).dtype(), f32);
  EXPECT_EQ(seen.types.back(), f16);
  Sequential later({}, {.policy = mixed_bfloat16});
  later.add(Dense(2));
  EXPECT_EQ(later(random::normal({2, 3})).dtype(), bf16);
}

struct Net {
  Dense hidden{4, tanh}, out{3};
  Tensor operator()(const Tensor& x) const { return out(hidden(x)) + reduce_mean(x); }
};

TEST(Policy, OfAStruct) {
  Model<Net> model(Net{}, {.policy = mixed_bfloat16});
  model.build({f32, {any_size, 5}});
  EXPECT_EQ(model(random::normal({2, 5})).dtype(), bf16);
  EXPECT_EQ(model->hidden.kernel().dtype(), f32);
}

TEST(Policy, ModelsWithoutOneAreOfTheInputsType) {
  Sequential model{Dense(2)};
  EXPECT_EQ(model(random::normal({2, 3}, {.dtype = f64})).dtype(), f64);
  EXPECT_EQ(model.loss_scale(), 1);
}

TEST(Policy, TheScaleBelongsToTheModelAndItsCopyHasItsOwn) {
  Sequential model({Dense(4, relu), Sequential{Dense(2)}}, {.policy = mixed_float16});
  model.build({f32, {any_size, 3}});
  for (const Variable& variable : model.variables())
    EXPECT_EQ(variable.cell()->loss_scale, model.layer_behind().loss_scale()) << variable.name();
  Sequential copy = model;
  EXPECT_NE(copy.layer_behind().loss_scale(), model.layer_behind().loss_scale());
  for (const Variable& variable : copy.variables())
    EXPECT_EQ(variable.cell()->loss_scale, copy.layer_behind().loss_scale()) << variable.name();
  model.layer_behind().loss_scale()->update(fill({}, 0, boolean));
  EXPECT_EQ(model.loss_scale(), 16384);
  EXPECT_EQ(copy.loss_scale(), 32768);
  copy = model;
  EXPECT_EQ(copy.loss_scale(), 16384);
}

TEST(Policy, AnOverflowLeavesMovingStatisticsAlone) {
  Sequential model({Dense(4), BatchNormalization(), Dense(2, linear, {.dtype = f32})}, {.policy = mixed_float16});
  SGD optimizer;
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Loss loss = Loss::mean(reduce_mean(square(model(x, training)), {.axis = {-1}}) * 0.01);
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
  });
  const Tensor x = random::normal({8, 3}, {.seed = 5});
  step(x);
  std::vector<Tensor> before;
  for (const Variable& variable : model.variables()) before.push_back(variable.value());
  step(x * std::numeric_limits<float>::infinity());
  EXPECT_EQ(optimizer.skipped_steps(), 1);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(bitwise_equal(before[i], model.variables()[i].value())) << model.variables()[i].name();
}

TEST(Policy, ExplainSaysWhatRunsInWhichType) {
  Sequential model({Dense(4), Dense(2, linear, {.dtype = f32})}, {.policy = mixed_bfloat16});
  const auto run = function([&](Tensor x) { return model(x); });
  run(random::normal({8, 3}));
  // Products of narrow floats are computed in f32; what is kept between the layers is not.
  const std::string graph = run.explain().graph();
  EXPECT_NE(graph.find(" : bf16[8,4]"), std::string::npos) << graph;
  EXPECT_EQ(graph.find(" : bf16[8,2]"), std::string::npos) << graph;
}

TEST(Policy, RefusesWhatMakesNoSense) {
  Dense dense(2);
  expect_says(error_of<InvalidArgument>([&] { dense.set_policy({i32, f32}); }), "floating");
  expect_says(error_of<InvalidArgument>([] { Dense(2, linear, {.dtype = i32}); }), "floating");
  dense.build({f64, {any_size, 3}});
  expect_says(error_of<InvalidArgument>([&] { dense.set_policy(mixed_float16); }), "before the layer is built");
}

}  // namespace
}  // namespace gradus::policy_test
