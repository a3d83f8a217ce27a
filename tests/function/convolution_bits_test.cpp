/// Convolutions of many channels, which Winograd's products compute: the same bits in every way of running a program.
#include <gtest/gtest.h>
#include <cstring>
#include "gradus/backend/cpu/isa.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "tests/instruction_sets.h"
#include "tests/threads.h"

namespace gradus::convolution_bits_test {
namespace {

using Floats = std::vector<float>;

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

enum class Way { compiled, eager };

struct Run {
  Way way = Way::compiled;
  int threads = 2;
  std::vector<std::string> disable = {};
};

/// All weights after three steps.
Floats train(const Run& run) {
  const Threads threads(run.threads);
  set_seed(5);
  const Tensor x = random::normal({4, 12, 12, 48}), y = random::integers({4}, {.high = 3});
  Sequential model{Conv2D(64, 3, {.padding = Padding::same, .activation = relu}), Conv2D(67, 3), Flatten(), Dense(3)};
  SGD optimizer({.learning_rate = 0.01, .momentum = 0.9});
  const SparseCategoricalCrossentropy loss_function(from_logits);
  const auto step = function(
      [&](Tensor images, Tensor labels) {
        GradientTape tape;
        const Loss loss = loss_function(labels, model(images, training));
        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
        return loss;
      },
      {.disable = run.disable, .run_eagerly = run.way == Way::eager});
  for (int i = 0; i < 3; ++i) step(x, y);
  Floats all;
  for (const Variable& variable : model.variables())
    for (const float v : variable.value().to_vector<float>()) all.push_back(v);
  return all;
}

TEST(ConvolutionBits, AreTheSameInEveryWay) {
  const Floats expected = train({});
  ASSERT_FALSE(same_bits(train({.disable = {"winograd"}}), expected)) << "too small to be computed in tiles";
  for (const int threads : {1, 3, 8}) EXPECT_TRUE(same_bits(train({.threads = threads}), expected)) << threads;
  EXPECT_TRUE(same_bits(train({.way = Way::eager}), expected));
  for (const std::string_view pass : pass_names()) {
    if (pass == "winograd") continue;
    EXPECT_TRUE(same_bits(train({.disable = {std::string(pass)}}), expected)) << pass;
  }
  using namespace cpu_backend;
  if (widest_isa() != Isa::avx512) return;
  const IsaScope narrow(narrowest_isa());
  EXPECT_TRUE(same_bits(train({}), expected)) << "AVX2";
}

/// Members of a team meet within the convolution while they are within the loop.
TEST(ConvolutionBits, AreTheSameWithinLoopsAndBranches) {
  set_seed(6);
  const Tensor images = random::normal({2, 12, 12, 64}), filters = random::normal({3, 3, 64, 64});
  const auto convolve = [&](const Tensor& x) { return conv2d(x, filters, {.padding = Padding::same}) * 0.03; };
  Tensor expected = images;
  for (int i = 0; i < 3; ++i) expected = convolve(expected);
  const auto loop = function([&](Tensor x) {
    return std::get<0>(while_loop([](Tensor, Tensor k) { return k < 3; },
                                  [&](Tensor t, Tensor k) {
                                    const Tensor next = cond(k >= 0, [&] { return convolve(t); }, [&] { return t; });
                                    return std::tuple(next, k + 1);
                                  },
                                  std::tuple(x, constant(0))));
  });
  for (const int number : {1, 2, 3}) {
    const Threads threads(number);
    for (int again = 0; again < 2; ++again)
      EXPECT_TRUE(same_bits(loop(images).to_vector<float>(), expected.to_vector<float>())) << number;
  }
}

/// Rows become examples, or groups where their weights' gradients are their own.
TEST(ConvolutionBits, OfRowsOfVmapAreThoseOfALoop) {
  set_seed(7);
  const std::int64_t rows = 3;
  const Tensor xs = random::normal({rows, 3, 12, 12, 64}), filters = random::normal({3, 3, 64, 64});
  const auto convolve = [](const Tensor& x, const Tensor& w) { return conv2d(x, w, {.padding = Padding::same}); };
  const auto by_weights = [&](const Tensor& x) {
    return gradient([&](Tensor w) { return reduce_sum(square(convolve(x, w))); }, filters);
  };
  const auto by_input = [&](const Tensor& x) {
    return gradient([&](Tensor t) { return reduce_sum(square(convolve(t, filters))); }, x);
  };
  const Floats weights = vectorized_map(by_weights, xs).to_vector<float>();
  const Floats inputs = vectorized_map(by_input, xs).to_vector<float>();
  Floats weights_of_rows, inputs_of_rows;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Tensor x = reshape(xs.rows(i, i + 1), {3, 12, 12, 64});
    for (const float v : by_weights(x).to_vector<float>()) weights_of_rows.push_back(v);
    for (const float v : by_input(x).to_vector<float>()) inputs_of_rows.push_back(v);
  }
  EXPECT_TRUE(same_bits(weights, weights_of_rows));
  EXPECT_TRUE(same_bits(inputs, inputs_of_rows));
}

}  // namespace
}  // namespace gradus::convolution_bits_test
