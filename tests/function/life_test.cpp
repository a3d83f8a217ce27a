/// What functions hold, and for how long: captures, Variables that die, a Variable's own value as an argument.
#include <gtest/gtest.h>
#include <optional>
#include "gradus/function/function.h"
#include "gradus/function/variable.h"
#include "gradus/gradients/functional.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "gradus/tensor/memory.h"

namespace gradus::life_test {
namespace {

TEST(Life, StaleCaptureOfATensorStaysWhatItWas) {
  auto captured = std::make_unique<Tensor>(constant({1.f, 2.f}));
  const auto f = function([&](Tensor x) { return x * *captured; });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{1, 2}));
  captured.reset();
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Life, StaleCaptureOfAVariableIsNoticedAndItsSuccessorTraced) {
  std::optional<Variable> w(std::in_place, constant({1.f, 2.f}), "w");
  const auto f = function([&](Tensor x) {
    w->assign_add(x);
    return reduce_sum(*w);
  });
  EXPECT_EQ(f(ones({2})).item(), 5);
  for (float first : {10.f, 20.f, 30.f}) {
    w.emplace(constant({first, 0.f}), "w");
    EXPECT_EQ(f(ones({2})).item(), first + 2) << "not the dead one's value";
    EXPECT_EQ(f(ones({2})).item(), first + 4);
    EXPECT_EQ(w->value().to_vector<float>(), (std::vector<float>{first + 2, 2}));
  }
  const Explanation e = f.explain();
  EXPECT_EQ(e.variants, 1) << "dead ones do not count";
  EXPECT_EQ(e.paths, 1);
  ASSERT_EQ(e.retraces.size(), 3u);
  EXPECT_EQ(e.retraces[0].reason, "variable w, which an earlier variant used, was destroyed");
}

TEST(Life, ADestroyedVariableReturnsItsMemoryWhileTheFunctionLives) {
  constexpr std::int64_t n = 1 << 20;
  std::optional<Variable> w(std::in_place, zeros({n}));
  const auto f = function([&](Tensor x) {
    w->assign_add(x);
    return reduce_sum(*w);
  });
  f(constant(1.f));
  const std::size_t before = memory_use().live_bytes;
  w.reset();
  EXPECT_LE(memory_use().live_bytes + n * sizeof(float), before);
}

TEST(Life, ARebuiltModelAndOptimizerAreTrained) {
  std::optional<Dense> layer(std::in_place, 1);
  std::optional<SGD> optimizer(std::in_place, SGDOptions{.learning_rate = 0.1});
  const Tensor x = ones({4, 3});
  const auto step = function([&](Tensor in) {
    GradientTape tape;
    const Tensor loss = reduce_mean(square((*layer)(in)-1));
    optimizer->apply_gradients(tape.gradient(loss, layer->trainable_variables()));
    return loss;
  });
  for (int fold = 0; fold < 3; ++fold) {
    const double first = step(x).item();
    for (int i = 0; i < 5; ++i) step(x);
    EXPECT_LT(step(x).item(), first) << fold;
    layer.emplace(1);
    optimizer.emplace(SGDOptions{.learning_rate = 0.1});
  }
  EXPECT_EQ(step.explain().variants, 1);
  EXPECT_EQ(step.explain().retraces.size(), 2u);
}

TEST(Life, AVariableThatAListKeepsAliveGoesOn) {
  std::optional<Variable> w(std::in_place, constant(1.f), "w");
  const Variables list{*w};
  const auto f = function([&] {
    list[0].assign_add(constant(1.f));
    return list[0].value();
  });
  EXPECT_EQ(f().item(), 2);
  w.reset();
  for (int i = 3; i < 6; ++i) EXPECT_EQ(f().item(), i);
  EXPECT_LE(f.explain().retraces.size(), 1u);
}

TEST(Life, AVariableThatIsMadeWithinTheFunctionIsRefused) {
  const auto f = function([](Tensor x) {
    Variable local(constant(1.f), "local");
    local.assign_add(x);
    return local.value();
  });
  try {
    f(constant(1.f));
    ADD_FAILURE() << "accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("variable local was made and destroyed"), std::string::npos)
        << error.what();
  }
}

TEST(Life, AStepCalledWithItsOwnVariablesValue) {
  Variable w(constant({1.f, 2.f}), "w");
  const auto step = function([&](Tensor x) {
    w.assign(w.value() * 2 + x);
    return reduce_sum(x);
  });
  double before = 3;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(step(w.value()).item(), before) << "the argument is what was given, whatever is assigned";
    before *= 3;
    EXPECT_EQ(reduce_sum(w).item(), before);
  }
}

TEST(Life, OneTensorInTwoArgumentSlots) {
  const auto f = function([](Tensor a, Tensor b) { return reduce_sum(a * a * b); });
  const auto d = function([](Tensor a, Tensor b) {
    const auto [da, db] = gradient([](Tensor u, Tensor v) { return reduce_sum(u * u * v); }, {a, b});
    return da * 100 + db;
  });
  const Tensor x = constant({2.f, 3.f});
  EXPECT_EQ(f(x, x).item(), 8 + 27);
  EXPECT_EQ(d(x, x).to_vector<float>(), (std::vector<float>{2 * 2 * 2 * 100 + 4, 2 * 3 * 3 * 100 + 9}));
  const Tensor y = constant({1.f, 1.f});
  EXPECT_EQ(f(x, y).item(), 4 + 9);
  EXPECT_EQ(f.explain().variants, 1);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(f(x, x), x).to_vector<float>(), (std::vector<float>{12, 27})) << "along both";
}

TEST(Life, ALargeCapturedTensorIsToldOnce) {
  const Tensor large = zeros({512, 1024}), small = zeros({1024});
  const Tensor kept = large + 0;
  kept.observed();
  const auto f = function([&](Tensor x, int power) { return reduce_sum(matmul(kept, x)) + reduce_sum(small) + power; },
                          {.name = "reader"});
  testing::internal::CaptureStderr();
  f(ones({1024, 1}), 1);
  f(ones({1024, 1}), 1);
  f(ones({1024, 1}), 2);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(told,
            "gradus: function reader has captured a tensor f32[512,1024] of 2097152 bytes, read by matmul: a constant "
            "from now on; pass it as an argument or make it a Variable if it changes\n");
}

TEST(Life, VariantsThatWereDroppedDoNotCount) {
  const std::size_t limit = set_variants_limit(0);
  const auto f = function(
      [](Tensor x, int power) {
        if (x > 0) return x * power;
        return x - power;
      },
      {.max_variants = 2});
  for (int round = 0; round < 2; ++round)
    for (int power = 1; power <= 4; ++power) {
      EXPECT_EQ(f(constant(3.f), power).item(), 3 * power);
      EXPECT_EQ(f(constant(-3.f), power).item(), -3 - power);
      EXPECT_EQ(f.explain().variants, 1) << "the newest";
      EXPECT_EQ(f.explain().paths, 2);
    }
  set_variants_limit(limit);
}

TEST(Life, ADestroyedFunctionReturnsItsConstantsAndVariables) {
  const std::size_t before = memory_use().live_bytes;
  {
    const auto f = function([large = zeros({1 << 20}) + 0](Tensor x) {
      if (x > 0) return reduce_sum(large) + x;
      return reduce_max(large) - x;
    });
    f(constant(1.f));
    f(constant(-1.f));
    EXPECT_GT(memory_use().live_bytes, before + (1 << 20));
  }
  EXPECT_LE(memory_use().live_bytes, before + 4096);
}

}  // namespace
}  // namespace gradus::life_test
