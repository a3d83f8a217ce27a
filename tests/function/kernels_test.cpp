/// How many kernels training steps need: a matter of the layers' structure, not of their number nor of the batch.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/backend/cpu/lower.h"
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/optim/optimizers.h"

namespace gradus {
namespace {

using cpu_backend::kernels_generated;

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
  Training training(depth);
  return training.generated_by_call(32) + training.generated_by_call(32);
}

TEST(CompiledKernels, IdenticalLayersCompileOnce) {
  const std::int64_t few = kernels_of(2);
  EXPECT_GT(few, 10);
  EXPECT_EQ(kernels_of(8), few);
  EXPECT_EQ(kernels_of(3), few);
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

}  // namespace
}  // namespace gradus
