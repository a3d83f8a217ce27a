/// Cells of one's own, and layers with a kernel of spectral norm 1.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/cell_layer.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/spectral_normalization.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::custom_layers_test {
namespace {

Tensor noise(const Shape& shape, std::uint64_t seed) { return random::normal(shape, {.seed = seed}); }
std::vector<std::string> names_of(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}
double distance(const Tensor& a, const Tensor& b) { return reduce_max(abs(a - b)).item(); }

/// h = tanh(kernel(x) + scale * h), and a count of steps.
struct Counting {
  Dense kernel{3, linear, {.use_bias = false}};
  Variable scale{constant({0.5, -0.5, 2.0}, f32)};
  std::vector<std::int64_t> state_sizes() const { return {3, 1}; }
  RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>& state) const {
    const Tensor h = tanh(kernel(x) + Tensor(scale) * state[0]);
    return {h, {h, state[1] + 1}};
  }
};

TEST(CustomCell, RunsInRNNLikeAnyOther) {
  set_seed(3);
  const CustomCell cell(Counting(), "counting");
  const RNN layer(cell, {.return_sequences = true});
  const Tensor x = noise({2, 4, 5}, 1);
  const RecurrentOutput all = layer.with_state(x);
  EXPECT_EQ(names_of(layer.variables()),
            (std::vector<std::string>{"rnn/counting/kernel/kernel", "rnn/counting/scale"}));
  const Tensor kernel = layer.variables()[0].value(), scale = layer.variables()[1].value();
  Tensor h = zeros({2, 3});
  for (int t = 0; t < 4; ++t) {
    h = tanh(matmul(squeeze(slice(x, {0, t, 0}, {-1, 1, -1}), {1}), kernel) + scale * h);
    EXPECT_LT(distance(squeeze(slice(all.output, {0, t, 0}, {-1, 1, -1}), {1}), h), 1e-6) << "step " << t;
  }
  EXPECT_EQ(all.state[1].to_vector<float>(), (std::vector<float>{4, 4}));
}

TEST(CustomCell, GradientsReachItsVariables) {
  set_seed(4);
  const RNN layer{CustomCell(Counting())};
  const Tensor x = noise({2, 3, 2}, 2);
  layer(x);
  const auto loss_at = [&] { return reduce_sum(square(layer(x))); };
  GradientTape tape;
  const auto slopes = tape.gradient(loss_at(), layer.trainable_variables());
  Variable& scale = layer.variables()[1];
  const Tensor before = scale.value();
  constexpr double step = 1e-2;
  for (int k = 0; k < 3; ++k) {
    const Tensor move = one_hot(constant(k), 3) * step;
    scale.assign(before + move);
    const double above = loss_at().item();
    scale.assign(before - move);
    const double below = loss_at().item();
    EXPECT_NEAR(slopes[1][k].item(), (above - below) / (2 * step), 2e-3) << k;
    scale.assign(before);
  }
}

TEST(CustomCell, CopiesHaveVariablesOfTheirOwn) {
  const RNN layer{CustomCell(Counting())};
  const Tensor x = noise({1, 2, 2}, 5), y = layer(x);
  const RNN copy = layer;
  copy.variables()[1].assign(zeros({3}));
  EXPECT_TRUE(bitwise_equal(layer(x), y));
  EXPECT_GT(distance(copy(x), y), 1e-4);
}

TEST(CustomCell, StacksAndCompiles) {
  set_seed(6);
  const RNN layer({CustomCell(Counting(), "first"), GRUCell(4), CustomCell(Counting(), "last")});
  const Tensor x = noise({2, 3, 2}, 7), want = layer(x);
  auto compiled = function([&](const Tensor& in) { return layer(in); });
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(bitwise_equal(compiled(x), want));
}

/// Its result is not its state.
struct Shifted {
  Dense kernel{3, linear, {.use_bias = false}};
  std::vector<std::int64_t> state_sizes() const { return {3}; }
  RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>& state) const {
    const Tensor h = kernel(x) - 0.5 * state[0];
    return {h + 1, {h}};
  }
};

TEST(CustomCell, TheLastResultIsThatOfTheSequence) {
  set_seed(7);
  const Tensor x = noise({2, 4, 5}, 8), mask = constant({{1, 1, 0, 0}, {0, 1, 1, 0}}) > 0;
  for (const bool backwards : {false, true}) {
    const RNN all(CustomCell{Shifted{}}, {.return_sequences = true, .go_backwards = backwards});
    const RNN last(CustomCell{Shifted{}}, {.go_backwards = backwards});
    all(x), last(x);  // builds
    last.variables()[0].assign(all.variables()[0].value());
    const auto compiled =
        function([&](const Tensor& in) { return last(in); }, {.input_signature = {{f32, {2, any_size, 5}}}});
    for (const RecurrentInput& input : {RecurrentInput{}, RecurrentInput{.mask = mask}}) {
      const RecurrentOutput one = last.with_state(x, input);
      const Tensor want = squeeze(slice(all(x, input), {0, 3, 0}, {-1, 1, -1}), {1});
      EXPECT_TRUE(bitwise_equal(one.output, want)) << backwards << input.mask.defined();
    }
    for (const std::int64_t time : {4, 3, 0}) {
      const Tensor some = slice(x, {0, 0, 0}, {-1, time, -1});
      EXPECT_TRUE(bitwise_equal(compiled(some), last(some))) << time;
    }
    EXPECT_TRUE(bitwise_equal(last(zeros({2, 0, 5})), zeros({2, 3})));
  }
}

struct WrongSize {
  Dense kernel{2};
  std::vector<std::int64_t> state_sizes() const { return {3}; }
  RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>&) const {
    const Tensor h = kernel(x);
    return {h, {h}};
  }
};
TEST(CustomCell, ItsResultIsChecked) {
  expect_says(error_of<InvalidArgument>([] { RNN(CustomCell{WrongSize{}})(ones({1, 2, 2})); }),
              "expected that of the first state");
}

/// A depth of 1 is a ConvLSTM2D.
TEST(ConvLSTM3D, OfOneLayerIsThatOfTwoDimensions) {
  set_seed(14);
  const ConvLSTM2D flat(2, 3, {.padding = Padding::same, .return_sequences = true});
  const ConvLSTM3D deep(2, {1, 3, 3}, {.padding = Padding::same, .return_sequences = true});
  const Tensor x = noise({2, 3, 4, 5, 2}, 15), spread = expand_dims(x, 2);
  flat(x), deep(spread);
  for (std::size_t i = 0; i < 3; ++i)
    deep.variables()[i].assign(reshape(flat.variables()[i].value(), deep.variables()[i].value().shape()));
  EXPECT_LT(distance(squeeze(deep(spread), {2}), flat(x)), 1e-6);
}

/// The largest singular value, by many steps from ones.
double norm_of(const Tensor& kernel) {
  const Tensor matrix = reshape(cast(kernel, f64), {-1, kernel.shape().back()});
  Tensor u = ones({1, kernel.shape().back()}, f64);
  for (int i = 0; i < 200; ++i) {
    const Tensor next = matmul(matmul(u, transpose(matrix)), matrix);
    u = next / sqrt(reduce_sum(square(next)));
    u.observed();
  }
  return std::sqrt(reduce_sum(square(matmul(u, transpose(matrix)))).item());
}

TEST(SpectralNormalization, FollowsThePowerIteration) {
  set_seed(8);
  const SpectralNormalization layer(Dense(4, linear, {.use_bias = false}), {.power_iterations = 2});
  const Tensor x = noise({3, 6}, 9);
  layer(x);
  EXPECT_EQ(names_of(layer.variables()),
            (std::vector<std::string>{"spectral_normalization/vector_u", "spectral_normalization/dense/kernel"}));
  EXPECT_EQ(layer.trainable_variables().size(), 1u);
  Tensor u = layer.variables()[0].value(), v;
  const Tensor matrix = layer.variables()[1].value();
  for (int i = 0; i < 2; ++i) {
    v = matmul(u, transpose(matrix));
    v = v / sqrt(reduce_sum(square(v)));
    u = matmul(v, matrix);
    u = u / sqrt(reduce_sum(square(u)));
  }
  const Tensor sigma = matmul(matmul(v, matrix), transpose(u));
  const Tensor y = layer(x, training);
  EXPECT_LT(distance(layer.variables()[0].value(), u), 1e-5);
  EXPECT_LT(distance(layer.variables()[1].value(), matrix / sigma), 1e-5);
  EXPECT_LT(distance(y, matmul(x, matrix / sigma)), 1e-5);
  // In inference nothing moves.
  const Tensor kernel = layer.variables()[1].value();
  EXPECT_TRUE(bitwise_equal(layer(x, inference), matmul(x, kernel)));
  EXPECT_TRUE(bitwise_equal(layer.variables()[1].value(), kernel));
}

TEST(SpectralNormalization, BringsKernelsToNormOne) {
  set_seed(10);
  const SpectralNormalization convolution(Conv2D(5, 3)), table(Embedding(7, 3));
  const Tensor image = noise({1, 5, 5, 2}, 11), tokens = constant({{1, 2}, {6, 0}});
  auto step = function([&](const Tensor& in) { return convolution(in, training); });
  for (int i = 0; i < 60; ++i) {
    step(image).observed();
    table(tokens, training).observed();
  }
  EXPECT_NEAR(norm_of(convolution.variables()[1].value()), 1, 1e-3);
  EXPECT_NEAR(norm_of(table.variables()[1].value()), 1, 1e-3);
}

TEST(SpectralNormalization, GradientsAreThoseByTheNormalizedKernel) {
  set_seed(12);
  const SpectralNormalization layer(Dense(2, linear, {.use_bias = false}));
  const Tensor x = noise({3, 2}, 13);
  layer(x);
  GradientTape tape;
  const Tensor loss = reduce_sum(square(layer(x, training)));
  const Tensor slope = tape.gradient(loss, layer.trainable_variables())[0];
  const Tensor kernel = layer.variables()[1].value();
  EXPECT_LT(distance(slope, 2 * matmul(transpose(x), matmul(x, kernel))), 1e-4);
}

TEST(SpectralNormalization, AKernelOfZerosStays) {
  const SpectralNormalization layer(Dense(2, linear, {.kernel_initializer = initializers::zeros}));
  EXPECT_EQ(reduce_max(abs(layer(ones({1, 3}), training))).item(), 0);
  EXPECT_EQ(reduce_max(abs(layer(ones({1, 3}), training))).item(), 0);
}

TEST(SpectralNormalization, MistakesAreNamed) {
  expect_says(error_of<InvalidArgument>([] { SpectralNormalization(Flatten{})(ones({1, 2})); }), "has 0 kernels");
  expect_says(error_of<InvalidArgument>([] { SpectralNormalization(Dense(2), {.power_iterations = 0}); }),
              "must be positive");
}

}  // namespace
}  // namespace gradus::custom_layers_test
