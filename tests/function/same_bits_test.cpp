/// One training run, computed in every way: each gives the same bits.
#include <gtest/gtest.h>
#include <cstring>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/thread_rates.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_key.h"
#include "gradus/optim/optimizers.h"
#include "tests/instruction_sets.h"
#include "tests/threads.h"

namespace gradus::same_bits_test {
namespace {

enum class Way { compiled, eager };

struct Run {
  Way way = Way::compiled;
  int threads = 1;
  std::vector<std::string> disable = {};
};

/// All weights and statistics after five steps on batches of 37 and 64, as bytes.
std::vector<float> train(const Run& run) {
  const Threads scope(run.threads);
  set_seed(7);
  const Tensor x = random::normal({64, 50}), y = random::integers({64}, {.high = 10});
  Sequential model{Dense(70, tanh), BatchNormalization(), Dropout(0.2), Dense(33, relu), Dense(10)};
  AdamW optimizer({.learning_rate = 0.01, .global_clipnorm = 0.5});
  const SparseCategoricalCrossentropy loss_function(from_logits);
  const auto body = [&](const Tensor& images, const Tensor& labels) {
    GradientTape tape;
    const Loss loss = loss_function(labels, model(images, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  };
  const auto step = function([&](Tensor images, Tensor labels) { return body(images, labels); },
                             {.disable = run.disable, .run_eagerly = run.way == Way::eager});
  for (int i = 0; i < 5; ++i) {
    const std::int64_t rows = i % 2 ? 37 : 64;
    step(x.rows(0, rows), y.rows(0, rows));
  }
  std::vector<float> bytes;
  for (const Variable& variable : model.variables()) {
    const std::vector<float> values = variable.value().to_vector<float>();
    bytes.insert(bytes.end(), values.begin(), values.end());
  }
  return bytes;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(SameBits, OnAnyNumberOfThreads) {
  const std::vector<float> one = train({});
  for (int threads : {2, 3, 8}) EXPECT_TRUE(same_bits(train({.threads = threads}), one)) << threads;
}

/// Rates decide which kernels are divided and run side by side, and whether there is a team at all.
TEST(SameBits, AtAnyRatesOfTheMachine) {
  const std::vector<float> one = train({});
  const ThreadRates slow{.flops = 1e8, .narrow_flops = 1e8, .bytes = 1e8};
  const ThreadRates fast{.flops = 1e15, .narrow_flops = 1e15, .bytes = 1e15};
  const ThreadRates moves{.flops = 1e15, .narrow_flops = 1e15, .bytes = 1e9};
  for (const ThreadRates& rates : {slow, fast, moves, ThreadRates()}) {
    const ThreadRatesScope scope(rates);
    for (const int threads : {2, 3}) EXPECT_TRUE(same_bits(train({.threads = threads}), one)) << rates.flops;
  }
}

/// The same rates stand in estimates and in shares of the peak, and decide who computes.
TEST(SameBits, TheCostModelAsksTheRatesOfTheMachine) {
  const Threads scope(2);
  const Tensor x = random::normal({64, 64}, {.seed = 1});
  const auto explained = [&](const ThreadRates& rates) {
    const ThreadRatesScope forced(rates);
    const auto f = function([](Tensor a) { return matmul(tanh(a), a); });
    f(x);
    return f.explain();
  };
  const Explanation slow = explained({.flops = 1e8, .narrow_flops = 1e8, .bytes = 1e8});
  const Explanation fast = explained({.flops = 1e15, .narrow_flops = 1e15, .bytes = 1e15});
  EXPECT_EQ(slow.rates.flops, 1e8);
  EXPECT_EQ(fast.rates.bytes, 1e15);
  ASSERT_EQ(slow.kernels.size(), fast.kernels.size());
  for (std::size_t k = 0; k < slow.kernels.size(); ++k) {
    EXPECT_GT(slow.kernels[k].seconds, 1e3 * fast.kernels[k].seconds) << slow.kernels[k].name;
    EXPECT_TRUE(slow.kernels[k].divided) << slow.kernels[k].name;
    EXPECT_FALSE(fast.kernels[k].divided) << fast.kernels[k].name;
  }
}

TEST(SameBits, RatesAreMeasuredOnceWithinWhatProcessorsDo) {
  const ThreadRates& rates = thread_rates();
  EXPECT_EQ(&rates, &thread_rates());
  EXPECT_GT(rates.flops, 1e8);
  EXPECT_LT(rates.flops, 2e12);  // a loop that was left out would be faster
  EXPECT_GE(rates.narrow_flops, rates.flops / 2);
  EXPECT_LT(rates.narrow_flops, 2e13);
  EXPECT_GT(rates.bytes, 1e8);
  EXPECT_LT(rates.bytes, 5e12);
}

TEST(SameBits, OpByOpAndCompiled) { EXPECT_TRUE(same_bits(train({.way = Way::eager}), train({}))); }

TEST(SameBits, FusedAndNot) {
  const std::vector<float> all = train({});
  for (const char* pass :
       {"fold", "simplify", "eliminate", "attention", "fuse", "rederive", "reuse", "share", "turns", "balance"})
    EXPECT_TRUE(same_bits(train({.disable = {pass}}), all)) << pass;
  EXPECT_TRUE(same_bits(train({.disable = {"fold", "simplify", "eliminate", "fuse", "reuse"}}), all));
}

TEST(SameBits, OnEachInstructionSet) {
  using namespace cpu_backend;
  if (widest_isa() != Isa::avx512) GTEST_SKIP() << "this processor has one of them";
  const std::vector<float> wide = train({});
  const IsaScope narrow(narrowest_isa());
  EXPECT_TRUE(same_bits(train({.threads = 2}), wide));
}

/// Without dropout, whose numbers in a lazy loop come from another count of calls.
TEST(SameBits, LazyAndCompiled) {
  std::vector<std::vector<float>> results;
  for (bool compiled : {false, true}) {
    set_seed(3);
    const Tensor x = random::normal({40, 30}), y = random::normal({40, 1});
    Sequential model{Dense(20, gelu), Dense(1)};
    SGD optimizer({.learning_rate = 0.05, .momentum = 0.9});
    const MeanSquaredError loss_function;
    const auto body = [&](const Tensor& a, const Tensor& b) {
      GradientTape tape;
      optimizer.apply_gradients(tape.gradient(loss_function(b, model(a, training)), model.trainable_variables()));
    };
    const auto step = function([&](Tensor a, Tensor b) { body(a, b); });
    for (int i = 0; i < 6; ++i) compiled ? step(x, y) : body(x, y);
    std::vector<float> values;
    for (const Variable& variable : model.variables())
      for (float v : variable.value().to_vector<float>()) values.push_back(v);
    results.push_back(values);
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
}

}  // namespace
}  // namespace gradus::same_bits_test
