/// A small step is the same whether all threads come, some do not, or fewer are called because others take the cores.
#include <gtest/gtest.h>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>
#include "gradus/base/thread_pool.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "tests/stopped_workers.h"
#include "tests/threads.h"

namespace gradus::small_steps_test {
namespace {

/// Losses of Adam on 784-128-10 with 16 rows, whose products go in turns: `steps` before each of `between`, and after.
std::vector<double> losses(int steps, const std::vector<std::function<std::shared_ptr<void>()>>& between = {}) {
  set_seed(7);
  const Tensor x = random::uniform({16, 784}, {.seed = 1}), y = argmax(random::uniform({16, 10}, {.seed = 2}));
  Sequential model{Dense(128, relu), Dense(10)};
  Adam optimizer;
  const SparseCategoricalCrossentropy loss_function(from_logits);
  const auto step = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    Loss loss = loss_function(y, model(x, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  std::vector<double> found;
  const auto train = [&] {
    for (int i = 0; i < steps; ++i) found.push_back(step(x, y).item());
  };
  train();
  for (const auto& begin : between) {
    const auto scope = begin();
    train();
  }
  return found;
}

/// Jobs of whose workers one comes late, until fewer are called.
void come_late() {
  ThreadPool& pool = ThreadPool::global();
  const auto late = [](int worker, int) {
    if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  };
  for (int i = 0; pool.threads_for_short_work() == pool.threads() && i < 1000; ++i)
    pool.run(pool.threads(), late, {.gain = 200'000});
}

TEST(SmallSteps, AreTheSameWithFewerThreads) {
  const auto nothing = [] { return std::shared_ptr<void>(); };
  std::vector<double> expected;
  {
    const Threads one(1);
    expected = losses(20, {nothing, nothing});
  }
  for (const int threads : {2, 4}) {
    const Threads scope(threads);
    EXPECT_EQ(losses(20, {nothing, nothing}), expected);
    const auto fewer = [&] {
      come_late();
      EXPECT_LT(ThreadPool::global().threads_for_short_work(), threads);
      return std::shared_ptr<void>();
    };
    const auto all_again = [&] {
      for (int i = 0; i < threads; ++i) ThreadPool::global().did_short_work(1e12);
      EXPECT_EQ(ThreadPool::global().threads_for_short_work(), threads);
      return std::shared_ptr<void>();
    };
    EXPECT_EQ(losses(20, {fewer, all_again}), expected);
  }
}

#if !defined(__SANITIZE_THREAD__)  // which puts signals off
TEST(SmallSteps, AreTheSameWhileSomeDoNotCome) {
  std::vector<double> expected;
  const auto nothing = [] { return std::shared_ptr<void>(); };
  {
    const Threads one(1);
    expected = losses(20, {nothing, nothing});
  }
  for (const int threads : {2, 4}) {
    const Threads scope(threads);
    // On a slow machine these steps are worth waiting for a worker.
    const auto stop_one = [] { return std::make_shared<StoppedWorkers>(std::vector{1}, std::chrono::seconds(1)); };
    EXPECT_EQ(losses(20, {stop_one, nothing}), expected);
    EXPECT_EQ(losses(20, {nothing, stop_one}), expected);
  }
}
#endif

}  // namespace
}  // namespace gradus::small_steps_test
