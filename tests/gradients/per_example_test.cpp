/// Per-example gradients against a loop over examples, with factors and without.
#include "gradus/gradients/per_example.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/recurrent.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/memory.h"
#include "tests/errors.h"

namespace gradus::per_example_test {
namespace {

/// The gradient of each example's loss, one tape each: [n, elements of `variable`].
Tensor looped(auto losses, const Variable& variable, const Tensor& x, const Tensor& y) {
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
    GradientTape tape;
    rows.push_back(tape.gradient(reduce_sum(losses(x.rows(i, i + 1), y.rows(i, i + 1))), variable));
  }
  return stack(rows);
}

struct Problem {
  Tensor x = random::normal({9, 5}, {.seed = 1}), y = random::integers({9}, {.high = 3, .seed = 2});
  Sequential model{Dense(7, tanh), Dense(3)};
  Problem() {
    set_seed(3);
    model.build(x.spec());
  }
  auto losses() {
    return
        [this](Tensor xb, Tensor yb) { return sparse_categorical_crossentropy(yb, model(xb, inference), from_logits); };
  }
};

TEST(PerExampleGradients, AreThoseOfALoop) {
  Problem p;
  const Variables variables = p.model.trainable_variables();
  const PerExampleGradients each = per_example_gradients(p.losses(), variables, {p.x, p.y});
  EXPECT_EQ(each.size(), 9u);
  Tensor squares = zeros({9});
  for (const Variable& variable : variables) {
    const Tensor wanted = looped(p.losses(), variable, p.x, p.y);
    EXPECT_LE(max_abs_difference(each[variable], wanted), 1e-6) << variable.name();
    squares = squares + reduce_sum(reshape(square(wanted), {9, -1}), {.axis = {1}});
  }
  EXPECT_LE(max_abs_difference(each.norms(), sqrt(squares)), 1e-6);
}

TEST(PerExampleGradients, AreClippedAndSummedOneByOne) {
  Problem p;
  const Variables variables = p.model.trainable_variables();
  const PerExampleGradients each = per_example_gradients(p.losses(), variables, {p.x, p.y});
  const PerExampleGradients clipped = each.clip_by_norm(0.5);
  EXPECT_LE(max_abs_difference(clipped.norms(), minimum(each.norms(), 0.5)), 1e-6);
  const Gradients total = clipped.sum();
  EXPECT_EQ(total.weight().item(), 9);
  for (const Variable& variable : variables)
    EXPECT_LE(max_abs_difference(total[variable] * 9, reduce_sum(clipped[variable], {.axis = {0}})), 1e-6);
  const PerExampleGradients twice = clipped.clip_by_norm(0.25);
  EXPECT_LE(max_abs_difference(twice.norms(), minimum(each.norms(), 0.25)), 1e-6);
}

/// Sequences, so that an example's kernel gradient has an inner dimension; a kernel used twice; one that is no product.
TEST(PerExampleGradients, OfOtherFormsThanOneRowTimesOneColumn) {
  const Variable kernel(random::normal({6, 8}, {.seed = 4}), "kernel"), gain(random::normal({6}, {.seed = 5}), "gain"),
      twice(random::normal({8, 8}, {.seed = 6}), "twice");
  const Variables variables{kernel, gain, twice};
  for (std::int64_t steps : {1, 2, 20}) {
    const Tensor x = random::normal({4, steps, 6}, {.seed = 7}), y = random::normal({4, steps, 8}, {.seed = 8});
    const auto losses = [&](const Tensor& xb, const Tensor& yb) {
      Tensor h = tanh(matmul(xb * gain, kernel));
      for (int i = 0; i < 2; ++i) h = tanh(matmul(h, twice));
      return reduce_sum(square(h - yb), {.axis = {1, 2}});
    };
    const PerExampleGradients each = per_example_gradients(losses, variables, {x, y});
    Tensor squares = zeros({4});
    for (const Variable& variable : variables) {
      const Tensor wanted = looped(losses, variable, x, y);
      EXPECT_LE(max_abs_difference(each[variable], wanted), 2e-5) << variable.name() << " of " << steps;
      squares = squares + reduce_sum(reshape(square(wanted), {4, -1}), {.axis = {1}});
    }
    EXPECT_LE(max_abs_difference(each.norms() / sqrt(squares), ones({4})), 1e-5) << steps;
    for (const Variable& variable : variables)
      EXPECT_LE(max_abs_difference(each.sum()[variable] * 4, reduce_sum(each[variable], {.axis = {0}})), 1e-4);
  }
}

/// Norms, clipped sums and budgets of layers whose gradients are no products: convolutions, tables, scales.
TEST(PerExampleGradients, OfEachKindOfLayer) {
  set_seed(3);
  const Tensor images = random::normal({6, 8, 8, 2}, {.seed = 1}),
               words = random::integers({6, 5}, {.high = 20, .seed = 1});
  const Tensor y = random::integers({6}, {.high = 3, .seed = 2});
  struct Case {
    std::string name;
    Sequential model;
    Tensor x;
  };
  for (Case& c : std::vector<Case>{
           {"convolutions",
            {Conv2D(4, 3, {.activation = relu}), Conv2D(5, 3, {.strides = 2}), Flatten(), Dense(3)},
            images},
           {"depthwise",
            {DepthwiseConv2D(3), SeparableConv2D(4, 3), GlobalAveragePooling2D(), LayerNormalization(), Dense(3)},
            images},
           {"a table", {Embedding(20, 4), LayerNormalization(), Flatten(), Dense(3)}, words},
           {"a large table", {Embedding(5000, 4), LSTM(6), Dense(3)}, words}}) {
    c.model.build(c.x.spec());
    const auto losses = [&](const Tensor& xb, const Tensor& yb) {
      return sparse_categorical_crossentropy(yb, c.model(xb, inference), from_logits);
    };
    const Variables variables = c.model.trainable_variables();
    for (const std::size_t max_bytes : {std::size_t{0}, 400 * KiB}) {
      const PerExampleGradients each = per_example_gradients(losses, variables, {c.x, y}, {.max_bytes = max_bytes});
      const PerExampleGradients clipped = each.clip_by_norm(0.5);
      const Gradients sum = clipped.sum();
      Tensor squares = zeros({6});
      for (const Variable& variable : variables) {
        const Tensor wanted = looped(losses, variable, c.x, y);
        EXPECT_LE(max_abs_difference(each[variable], wanted), 1e-6) << c.name << ": " << variable.name();
        squares = squares + reduce_sum(reshape(square(wanted), {6, -1}), {.axis = {1}});
        EXPECT_LE(max_abs_difference(sum[variable] * 6, reduce_sum(clipped[variable], {.axis = {0}})), 1e-6);
      }
      EXPECT_LE(max_abs_difference(each.norms(), sqrt(squares)), 1e-5) << c.name;
      EXPECT_LE(max_abs_difference(clipped.norms(), minimum(each.norms(), 0.5)), 1e-6) << c.name;
    }
  }
}

/// Squares of f16 are infinite from 256 on.
TEST(PerExampleGradients, OfNarrowTypesHaveWideNorms) {
  for (const DType dtype : {f16, bf16}) {
    const Variable w(ones({4, 3}, dtype), "w"), b(ones({3}, dtype), "b");
    const Tensor x = full({5, 4}, 32, dtype);  // a power of two, so that bf16 holds what follows
    const auto losses = [&](const Tensor& xb) {
      return reduce_sum(square(matmul(xb, w)) * 0.25f, {.axis = {1}}) + reduce_sum(b * xb.rows(0, 1)[0][0]);
    };
    const PerExampleGradients each = per_example_gradients(losses, Variables{w, b}, {x});
    const double norm = std::sqrt(12 * 2048.0 * 2048.0 + 3 * 32.0 * 32.0);  // 2 * 128 * 32 / 4 each
    EXPECT_EQ(each.norms().spec(), (Spec{f32, {5}}));
    EXPECT_LE(max_abs_difference(each.norms(), full({5}, norm)), 1e-6 * norm);
    const Gradients sum = each.clip_by_norm(1).sum();
    EXPECT_EQ(sum[w].dtype(), dtype);
    EXPECT_LE(max_abs_difference(sum[w], full({4, 3}, 2048 / norm, dtype)), 1e-3) << sum[w];
    const Tensor small = full({5, 3}, 0.125, dtype);  // clipped by a factor that f16 can hardly hold
    const Variable v(ones({3}, dtype), "v");
    const auto steep = [&](const Tensor& xb) { return reduce_sum(xb * v * 3e4f, {.axis = {1}}); };
    const PerExampleGradients tiny = per_example_gradients(steep, Variables{v}, {small}).clip_by_norm(1e-2);
    EXPECT_LE(max_abs_difference(tiny.norms(), full({5}, 1e-2)), 1e-6);
    EXPECT_LE(max_abs_difference(tiny[v], full({5, 3}, 1e-2 / std::sqrt(3.0), dtype)), 5e-5) << tiny[v];
  }
}

/// Neither the norms nor the sum multiply the kernel's gradients out.
TEST(PerExampleGradients, StayFactorsUntilTheyAreRead) {
  const Tensor x = random::normal({64, 300}, {.seed = 1}), y = random::integers({64}, {.high = 3, .seed = 2});
  Sequential model{Dense(200, relu), Dense(3)};
  model.build(x.spec());
  const auto private_sum = function([&](Tensor xb, Tensor yb) {
    const auto losses = [&](Tensor xe, Tensor ye) {
      return sparse_categorical_crossentropy(ye, model(xe, inference), from_logits);
    };
    const PerExampleGradients each = per_example_gradients(losses, model.trainable_variables(), {xb, yb});
    return std::tuple{each.norms(), each.clip_by_norm(1.0).sum()};
  });
  private_sum(x, y);
  const std::size_t multiplied_out = 64 * 300 * 200 * sizeof(float);
  EXPECT_LT(private_sum.explain().peak_bytes, multiplied_out / 4);
}

TEST(PerExampleGradients, WithSizesThatVaryInOneProgram) {
  Problem p;
  const auto norms = function(
      [&](Tensor x, Tensor y) {
        return per_example_gradients(p.losses(), p.model.trainable_variables(), {x, y}).norms();
      },
      {.input_signature = {{f32, {any_size, 5}}, {i32, {any_size}}}});
  const Tensor wanted = per_example_gradients(p.losses(), p.model.trainable_variables(), {p.x, p.y}).norms();
  for (std::int64_t rows : {9, 4, 1})
    EXPECT_LE(max_abs_difference(norms(p.x.rows(0, rows), p.y.rows(0, rows)), wanted.rows(0, rows)), 1e-6);
  EXPECT_EQ(norms.explain().variants, 1);
}

TEST(PerExampleGradients, OfAPartOfTheBatchAtATime) {
  Problem p;
  const Tensor x = random::normal({3000, 5}, {.seed = 4}), y = random::integers({3000}, {.high = 3, .seed = 5});
  const Variables variables = p.model.trainable_variables();
  const PerExampleGradients whole = per_example_gradients(p.losses(), variables, {x, y});
  for (std::size_t budget : {20 * KiB, 100 * KiB, 100 * MiB}) {
    const PerExampleGradients parts = per_example_gradients(p.losses(), variables, {x, y}, {.max_bytes = budget});
    EXPECT_TRUE(bitwise_equal(parts.norms(), whole.norms())) << budget;
    for (const Variable& variable : variables) EXPECT_TRUE(bitwise_equal(parts[variable], whole[variable])) << budget;
  }
  expect_says(error_of([&] { per_example_gradients(p.losses(), variables, {x, y}, {.max_bytes = 8}); }),
              "the smallest budget that works");
}

TEST(PerExampleGradients, MistakesAreExplained) {
  Problem p;
  const Variables variables = p.model.trainable_variables();
  const Variable stranger(ones({2}), "stranger");
  expect_says(error_of([&] { per_example_gradients(p.losses(), variables, {p.x, p.y.rows(0, 4)}); }),
              "tensor 1 is i32[4], but tensor 0 is f32[9,5]");
  expect_says(error_of([&] { per_example_gradients(p.losses(), variables, {p.x.rows(0, 0), p.y.rows(0, 0)}); }),
              "no examples");
  expect_says(error_of([&] { per_example_gradients(p.losses(), Variables(), {p.x, p.y}); }), "no sources");
  const auto mean = [&](Tensor x, Tensor y) { return reduce_mean(p.losses()(x, y)); };
  expect_says(error_of([&] { per_example_gradients(mean, variables, {p.x, p.y}); }), "expected [1]");
  expect_says(error_of([&] { per_example_gradients(p.losses(), variables + Variables{stranger}, {p.x, p.y}); }),
              "does not depend on variable stranger");
  const PerExampleGradients each = per_example_gradients(p.losses(), variables, {p.x, p.y});
  expect_says(error_of([&] { each[stranger]; }), "none of variable stranger");
  expect_says(error_of([&] { each.clip_by_norm(0); }), "must be positive");
}

}  // namespace
}  // namespace gradus::per_example_test
