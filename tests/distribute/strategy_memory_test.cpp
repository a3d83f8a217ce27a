/// Memory that runs short in a step of a strategy.
#include <gtest/gtest.h>
#include <vector>
#include "gradus/gradus.h"

namespace gradus::strategy_memory_test {
namespace {

/// Memory that runs short on a replica, after values for all shards were computed, leaves Variables as they were.
TEST(StrategyMemory, AReplicaWithoutMemoryLeavesVariablesUnchanged) {
  const MirroredStrategy strategy({.devices = {cpu(1)}});
  Variable count(constant(0.0f), "count");
  const auto step = function([&](Tensor x) {
    count.assign(count + 1);  // of no sum: it stands before the shards
    return exp(x) * 2;
  });
  Sequential model{Dense(4)};
  SGD optimizer({.learning_rate = 0.1, .momentum = 0.9});
  const auto training = function([&](Tensor x) {
    GradientTape tape;
    const Loss loss = Loss::mean(reduce_sum(model(x), {.axis = {1}}));
    optimizer.apply_gradients(tape.gradient(loss, model.variables()));
    return exp(model(x)) * exp(transpose(reshape(x, {4, -1})));  // on shards, behind the update
  });
  const Tensor x = random::normal({1 << 16, 4}, {.seed = 1});
  const auto state = [&] {
    std::vector<std::vector<float>> all{count.value().to_vector<float>()};
    for (const Variables& each : {model.variables(), optimizer.variables()})
      for (const Variable& variable : each)
        if (variable.dtype() == f32) all.push_back(variable.value().to_vector<float>());
    return all;
  };
  const std::size_t limit = memory_use(cpu(1)).limit_bytes;
  const auto check = [&](const auto& work) {
    for (int i = 0; i < 2; ++i) strategy.run(work, x);
    int failures = 0;
    for (const std::size_t room : {std::size_t{1} << 16, std::size_t{1} << 20, std::size_t{3} << 20}) {
      const auto before = state();
      const std::int64_t updates = optimizer.iterations();
      set_memory_limit(cpu(1), memory_use(cpu(1)).live_bytes + room);
      try {
        strategy.run(work, x);
      } catch (const ResourceExhausted&) {
        ++failures;
        EXPECT_EQ(state(), before) << room;
        EXPECT_EQ(optimizer.iterations(), updates);
      }
      set_memory_limit(cpu(1), limit);
    }
    EXPECT_GE(failures, 1);
  };
  check(step);
  check(training);
}

}  // namespace
}  // namespace gradus::strategy_memory_test
