/// How many kernels training steps need: a matter of the layers' structure, not of their number nor of the batch.
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <functional>
#include "gradus/backend/cpu/codegen/lower.h"
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"

namespace gradus::kernels_test {
namespace {

using cpu_backend::kernels_generated;

/// The median of three measurements, two of which other programs may disturb once each: a lazy program beside the step
/// is compiled at its second sight, and kernels of a program of an earlier test that still lives are not generated
/// anew.
std::int64_t median_of_three(const std::function<std::int64_t()>& measure) {
  std::array<std::int64_t, 3> all;
  for (std::int64_t& each : all) each = measure();
  std::ranges::sort(all);
  return all[1];
}

struct Block {
  LayerNormalization norm;
  Dense up{40, gelu}, down{20};
  Tensor operator()(const Tensor& x) const { return x + down(up(norm(x))); }
};
struct Stack {
  std::vector<Block> blocks;
  Dense last{3};
  Tensor operator()(Tensor x) const {
    for (const Block& block : blocks) x = block(x);
    return last(x);
  }
};

/// A model, its step, and how many kernels calls generate.
struct Training {
  explicit Training(std::size_t depth) : model(Stack{std::vector<Block>(depth)}) {
    model.build({f32, {any_size, 20}});
    synchronize();
  }
  std::int64_t generated_by_call(std::int64_t rows) {
    const Tensor x = random::normal({rows, 20}, {.seed = 1}), y = random::integers({rows}, {.high = 3, .seed = 2});
    synchronize();
    const std::int64_t before = kernels_generated();
    (void)step(x, y).item();
    return kernels_generated() - before;
  }

  Model<Stack> model;
  AdamW optimizer;  // without a norm of all gradients, a chain of scalars whose length is the number of variables
  SparseCategoricalCrossentropy loss{from_logits};
  std::function<Loss(const Tensor&, const Tensor&)> step = function([this](Tensor x, Tensor y) {
    GradientTape tape;
    Loss mean = loss(y, model(x, training));
    optimizer.apply_gradients(tape.gradient(mean, model.trainable_variables()));
    return mean;
  });
};

std::int64_t kernels_of(std::size_t depth) {
  return median_of_three([&] {
    Training training(depth);
    return training.generated_by_call(32) + training.generated_by_call(32);
  });
}

TEST(CompiledKernels, IdenticalLayersCompileOnce) {
  const std::int64_t few = kernels_of(2);
  EXPECT_GT(few, 10);
  EXPECT_EQ(kernels_of(8), few);
  EXPECT_EQ(kernels_of(3), few);
}

struct AttentionBlock {
  LayerNormalization before, between;
  MultiHeadAttention attention{2, 8, {.causal = true}};
  Dense up{40, gelu}, down{16};
  Tensor operator()(const Tensor& x) const {
    const Tensor attended = x + attention(before(x));
    return attended + down(up(between(attended)));
  }
};
struct Transformer {
  std::vector<AttentionBlock> blocks;
  Dense last{3};
  Tensor operator()(Tensor x) const {
    for (const AttentionBlock& block : blocks) x = block(x);
    return last(x);
  }
};

/// How many kernels two steps of a transformer generate whose gradients are clipped together.
std::int64_t generated_by_transformer(std::size_t depth) {
  Model model(Transformer{std::vector<AttentionBlock>(depth)});
  AdamW optimizer({.global_clipnorm = 1});
  const SparseCategoricalCrossentropy loss(from_logits);
  const auto step = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    Loss mean = loss(y, model(x, training));
    optimizer.apply_gradients(tape.gradient(mean, model.trainable_variables()));
    return mean;
  });
  const Tensor x = random::normal({4, 12, 16}, {.seed = 1}), y = random::integers({4, 12}, {.high = 3, .seed = 2});
  model.build(x.spec());
  synchronize();
  const std::int64_t before = kernels_generated();
  for (int i = 0; i < 2; ++i) (void)step(x, y).item();
  return kernels_generated() - before;
}
std::int64_t kernels_of_transformer(std::size_t depth) {
  return median_of_three([&] { return generated_by_transformer(depth); });
}

/// But for the chain of scalars that makes the norm of all gradients: it is cut at 256 formulas, which those of 130
/// variables pass. A cut makes one kernel more, and one of what is left of the update that shared its kernel.
TEST(CompiledKernels, OfATransformerDoNotGrowWithItsDepth) {
  const std::int64_t few = kernels_of_transformer(2);
  EXPECT_GT(few, 20);
  EXPECT_LE(kernels_of_transformer(1), few);
  EXPECT_EQ(kernels_of_transformer(4), few);
  EXPECT_LE(kernels_of_transformer(8), few + 2);
}

TEST(CompiledKernels, AThirdBatchSizeCompilesNone) {
  Training training(2);
  std::int64_t generated = 0;
  for (const std::int64_t rows : {32, 32, 24, 24}) generated += training.generated_by_call(rows);
  EXPECT_GT(generated, 0);
  for (const std::int64_t rows : {17, 48, 300}) EXPECT_EQ(training.generated_by_call(rows), 0) << rows;
}

TEST(CompiledKernels, ASecondFunctionOfTheSameStructureCompilesNone) {
  Training first(2);
  EXPECT_GT(first.generated_by_call(32) + first.generated_by_call(32), 0);
  Training second(2);
  EXPECT_EQ(second.generated_by_call(32) + second.generated_by_call(32), 0);
}

// ---------------------------------------------------------------- passes over memory

struct Traffic {
  std::size_t kernels = 0, read = 0, written = 0;
};
/// Of kernels that read or write as much as `bytes`.
Traffic traffic_of(const Explanation& explanation, std::size_t bytes) {
  Traffic traffic;
  for (const Kernel& kernel : explanation.kernels)
    if (std::max(kernel.bytes_read, kernel.bytes_written) >= bytes)
      ++traffic.kernels, traffic.read += kernel.bytes_read, traffic.written += kernel.bytes_written;
  return traffic;
}

/// The norm reads gradients, the update gradients, weights and both slots, of which it writes all but the gradients.
TEST(PassesOverMemory, ClippingByTheNormOfAllAndAdamWTakeTwo) {
  constexpr std::size_t variables = 20, least_bytes = 300 * 500 * sizeof(float);
  std::vector<Variable> weights;
  std::array<Tensor, variables> slopes;
  Variables all;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < variables; ++i) {
    const Shape shape{300 + static_cast<std::int64_t>(i / 2), 500};  // pairs are of one size
    weights.emplace_back(random::normal(shape));
    slopes[i] = random::normal(shape);
    bytes += slopes[i].bytes();
  }
  for (Variable& variable : weights) all = all + variable;
  AdamW optimizer({.global_clipnorm = 1});
  const auto step = function([&](std::array<Tensor, variables> gradients) {
    GradientTape tape;
    Tensor sum = constant(0.0F);
    for (std::size_t i = 0; i < variables; ++i) sum = sum + reduce_sum(weights[i] * gradients[i]);
    optimizer.apply_gradients(tape.gradient(Loss::of(sum), all));
  });
  for (int i = 0; i < 2; ++i) step(slopes);
  const Traffic traffic = traffic_of(step.explain(), least_bytes);
  constexpr std::size_t scalars = 64 << 10;
  EXPECT_LE(traffic.kernels, 2 * variables);
  EXPECT_GE(traffic.read, 4 * bytes);
  EXPECT_LE(traffic.read, 5 * bytes + scalars);
  EXPECT_GE(traffic.written, 3 * bytes);
  EXPECT_LE(traffic.written, 3 * bytes + scalars);
}

TEST(PassesOverMemory, ACrossEntropyAndItsGradientByLogitsTakeOne) {
  const Tensor logits = random::normal({512, 300}), labels = random::integers({512}, {.high = 300});
  const auto f = function([](Tensor y, Tensor z) {
    GradientTape tape;
    tape.watch(z);
    const Loss loss = Loss::mean(sparse_categorical_crossentropy(y, z, from_logits));
    return std::pair{loss, tape.gradient(loss, z)};
  });
  for (int i = 0; i < 2; ++i) f(labels, logits);
  const Traffic traffic = traffic_of(f.explain(), logits.bytes());
  EXPECT_EQ(traffic.kernels, 1u);
  EXPECT_LE(traffic.read, logits.bytes() + 16 * labels.bytes());
  EXPECT_LE(traffic.written, logits.bytes() + 16 * labels.bytes());
}

}  // namespace
}  // namespace gradus::kernels_test
