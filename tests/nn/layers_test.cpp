/// Layers and modules: values, modes, names, copies, and what is refused.
#include "gradus/base/rooms.h"
#include "gradus/nn/layers.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/optim/optimizers.h"
#include "tests/errors.h"

namespace gradus::layers_test {
namespace {

std::vector<std::string> names_of(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

TEST(Dense, IsActivationOfProductAndBias) {
  set_seed(1);
  Dense layer(3, relu, {.bias_initializer = initializers::constant(0.5)});
  const Tensor x = random::normal({5, 4}, {.seed = 1});
  const Tensor y = layer(x);
  EXPECT_TRUE(bitwise_equal(y, relu(matmul(x, layer.kernel()) + layer.bias())));
  EXPECT_EQ(layer.kernel().shape(), (Shape{4, 3}));
  const double limit = std::sqrt(6.0 / 7);
  EXPECT_LE(reduce_max(abs(layer.kernel().value())).item(), limit);
  EXPECT_GT(reduce_max(abs(layer.kernel().value())).item(), limit / 2);
  EXPECT_EQ(layer(random::normal({2, 6, 4}, {.seed = 1})).shape(), (Shape{2, 6, 3}));
  EXPECT_EQ(layer(random::normal({4}, {.seed = 1})).shape(), (Shape{3}));
}

TEST(Dense, Options) {
  Dense plain(2, linear, {.use_bias = false, .name = "projection"});
  plain.build({f64, {any_size, 3}});
  EXPECT_EQ(names_of(plain.variables()), (std::vector<std::string>{"projection/kernel"}));
  EXPECT_EQ(plain.kernel().dtype(), f64);
  expect_says(error_of([&] { plain.bias(); }), "bias");
  expect_says(error_of([&] { plain(zeros({2, 5}, f64)); }), "expected 3");
  expect_says(error_of([&] { Dense(0); }), "units");
  expect_says(error_of([&] { Dense(2)(constant({{1, 2}})); }), "cast");
  expect_says(error_of([&] { Dense(2).kernel(); }), "before it is built");
}

TEST(Flatten, KeepsTheBatch) {
  EXPECT_EQ(Flatten()(zeros({5, 2, 3})).shape(), (Shape{5, 6}));
  EXPECT_EQ(Flatten()(zeros({5})).shape(), (Shape{5, 1}));
  expect_says(error_of([&] { Flatten()(constant(1.0)); }), "scalar");
}

TEST(Dropout, DropsInTrainingAlone) {
  set_seed(3);
  const Dropout layer(0.25);
  const Tensor x = ones({200, 100});
  EXPECT_TRUE(bitwise_equal(layer(x), x));
  EXPECT_TRUE(bitwise_equal(layer(x, inference), x));
  const Tensor first = layer(x, training), second = layer(x, training);
  EXPECT_FALSE(bitwise_equal(first, second));
  double zeros = 0;
  for (float value : first.to_vector<float>()) {
    EXPECT_TRUE(value == 0 || std::abs(value - 1 / 0.75f) < 1e-6) << value;
    zeros += value == 0;
  }
  EXPECT_NEAR(zeros / 20000, 0.25, 0.02);
  EXPECT_TRUE(bitwise_equal(Dropout(0)(x, training), x));
  EXPECT_THROW(Dropout(1), InvalidArgument);
  EXPECT_THROW(Dropout(-0.1), InvalidArgument);
}

TEST(BatchNormalization, NormalisesByTheBatchInTraining) {
  BatchNormalization layer;
  const Tensor x = random::normal({40, 3}, {.mean = 5, .stddev = 2, .dtype = f64, .seed = 1});
  const Tensor y = layer(x, training);
  const Tensor mean = reduce_mean(x, {.axis = {0}}), variance = reduce_variance(x, {.axis = {0}});
  EXPECT_LT(max_abs_difference(y, (x - mean) * rsqrt(variance + 1e-3)), 1e-14);
  EXPECT_LT(max_abs_difference(layer.variables()["batch_normalization/moving_mean"], mean * 0.01), 1e-15);
  EXPECT_LT(max_abs_difference(layer.variables()["batch_normalization/moving_variance"], variance * 0.01 + 0.99),
            1e-14);
  EXPECT_EQ(layer.trainable_variables().size(), 2u);
  const Tensor by_moving = (x - mean * 0.01) * rsqrt(variance * 0.01 + 0.99 + 1e-3);
  EXPECT_LT(max_abs_difference(layer(x, inference), by_moving), 1e-13);
  EXPECT_THROW(BatchNormalization({.momentum = 2}), InvalidArgument);
  EXPECT_THROW(BatchNormalization()(constant(1.0)), InvalidArgument);
}

TEST(Sequential, NamesItsVariables) {
  Sequential model{Dense(4, relu), BatchNormalization(), Dense(3), Sequential{Dense(2)},
                   Dense(1, linear, {.name = "out"})};
  model.build({f32, {any_size, 5}});
  EXPECT_EQ(names_of(model.trainable_variables()),
            (std::vector<std::string>{"dense/kernel", "dense/bias", "batch_normalization/gamma",
                                      "batch_normalization/beta", "dense_1/kernel", "dense_1/bias",
                                      "sequential/dense/kernel", "sequential/dense/bias", "out/kernel", "out/bias"}));
  EXPECT_EQ(model.variables().size(), 12u);
  expect_says(error_of([&] { model.variables()["dense/kernal"]; }), "dense/kernel");
}

TEST(Sequential, Summary) {
  Sequential model{Flatten(), Dense(128, relu), Dense(10)};
  model.build({f32, {any_size, 28, 28}});
  const std::string table = model.summary();
  for (const char* part : {"flatten", "dense_1", "100480", "1290", "101770", "407080"}) expect_says(table, part);
}

TEST(Sequential, ACopyHasVariablesOfItsOwn) {
  Sequential model{Dense(4, relu), Dense(2)};
  const Tensor x = random::normal({3, 5}, {.seed = 1});
  const Tensor y = model(x);
  Sequential copy = model;
  EXPECT_TRUE(bitwise_equal(copy(x), y));
  copy.trainable_variables()[0].assign(zeros({5, 4}));
  EXPECT_TRUE(bitwise_equal(model(x), y));
  EXPECT_FALSE(bitwise_equal(copy(x), y));
  const std::shared_ptr<VariableCell> cell = copy.variables().cells()[0];
  copy = model;  // writes the values into the cells that there are
  EXPECT_EQ(copy.variables().cells()[0], cell);
  EXPECT_TRUE(bitwise_equal(copy(x), y));
  Sequential other{Dense(3)};
  other(x);
  EXPECT_THROW(other = model, InvalidArgument);
  const Sequential moved = std::move(model);
  EXPECT_TRUE(bitwise_equal(moved(x), y));
  expect_says(error_of([&] { model(x); }), "moved from");  // NOLINT: that is the test
}

TEST(Sequential, IsRefusedBeforeItIsBuilt) {
  Sequential model{Dense(2)};
  const Variables later = model.trainable_variables();  // may be asked, as an argument beside the first call
  expect_says(error_of([&] { later.size(); }), "no variables yet");
  model(zeros({1, 3}));
  EXPECT_EQ(later.size(), 2u);
  EXPECT_THROW(model.add(Dense(2)), InvalidArgument);
  EXPECT_THROW(Sequential()(zeros({1, 3})), InvalidArgument);
  EXPECT_THROW(model.layer(1), OutOfRange);
  model.layer(0).set_trainable(false);
  EXPECT_EQ(model.trainable_variables().size(), 0u);
}

TEST(Sequential, APartOfAModelIsOneOfItsLayers) {
  set_seed(1);
  EXPECT_EQ(Sequential().size(), 0u);
  Sequential model{Dense(4, relu), Dropout(0.5), Dense(3)};
  EXPECT_EQ(model.size(), 3u);
  const Tensor x = random::normal({5, 2}), y = model(x);
  expect_says(error_of([&] { model.add(Dense(2)); }), "layer(0) to layer(size() - 1)");
  std::vector<Module> layers;
  for (std::size_t i = 0; i + 1 < model.size(); ++i) layers.push_back(model.layer(i));
  layers.push_back(Dense(7));
  Sequential other(layers);
  EXPECT_EQ(other(x).shape(), (Shape{5, 7}));
  EXPECT_TRUE(bitwise_equal(other.layer(0)(x), model.layer(0)(x))) << "with its values";
  EXPECT_NE(other.variables()[0].cell(), model.variables()[0].cell()) << "copies";
}

TEST(Lambda, IsALayer) {
  Sequential model{Lambda([](Tensor x) { return x / 255.0; }, "rescale"), Dense(2, softmax)};
  EXPECT_NEAR(reduce_sum(model(ones({1, 4}))).item(), 1, 1e-6);
}

/// Dropout's random numbers, moving statistics and the update: all bits.
TEST(Training, CompiledIsOpByOpBitForBit) {
  struct Run {
    std::vector<double> losses;
    Tensors variables;
  };
  const auto run = [](FunctionOptions options) {
    set_seed(7);
    Sequential model{Dense(16, relu), BatchNormalization(), Dropout(0.3), Dense(4)};
    model.build({f32, {any_size, 8}});
    Adam optimizer({.learning_rate = 0.01});
    const SparseCategoricalCrossentropy loss_function(from_logits);
    const auto step = function(
        [&](Tensor x, Tensor y) {
          GradientTape tape;
          Loss loss = loss_function(y, model(x, training));
          optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
          return loss;
        },
        options);
    Run result;
    for (int i = 0; i < 6; ++i) {
      const int rows = i == 4 ? 5 : 20;
      const std::uint64_t seed = static_cast<std::uint64_t>(i);
      result.losses.push_back(
          step(random::normal({rows, 8}, {.seed = seed}), random::integers({rows}, {.high = 4, .seed = seed})).item());
    }
    for (const Variable& variable : model.variables() + optimizer.variables())
      result.variables.push_back(variable.value());
    return result;
  };
  const Run eager = run({.run_eagerly = true}), compiled = run({}), unfused = run({.disable = {"fuse"}});
  EXPECT_EQ(eager.losses, compiled.losses);
  EXPECT_EQ(unfused.losses, compiled.losses);
  for (std::size_t i = 0; i < eager.variables.size(); ++i) {
    EXPECT_TRUE(bitwise_equal(eager.variables[i], compiled.variables[i])) << i;
    EXPECT_TRUE(bitwise_equal(unfused.variables[i], compiled.variables[i])) << i;
  }
}

TEST(Training, AModelCapturedByValueWouldTrainACopy) {
  Sequential model{Dense(2)};
  model.build({f32, {any_size, 3}});
  SGD optimizer;
  const auto step = function([model, &optimizer](Tensor x) {
    GradientTape tape;
    const Loss loss = Loss::mean(reduce_sum(model(x, training), {.axis = {1}}));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
  });
  expect_says(error_of([&] { step(ones({4, 3})); }), "by value");
}

}  // namespace
}  // namespace gradus::layers_test
