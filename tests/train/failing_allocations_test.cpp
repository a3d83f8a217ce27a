/// Every allocation of a buffer in a training step fails once: an error of memory, model, optimizer and random numbers
/// in the bits that they had, and the next step is that of the undisturbed training. Compiled, op by op, in fit, and
/// while model and optimizer are built.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/random_state.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "gradus/tensor/failing_allocation.h"
#include "gradus/train/fit.h"

namespace gradus::failing_allocations_test {
namespace {

/// Copies: memory that somebody holds is not overwritten, so a step would allocate other things.
using Bits = std::vector<std::vector<std::byte>>;

Bits bits_of(const Variables& variables) {
  Bits all;
  for (const Variable& variable : variables) {
    const Tensor value = variable.value();
    const auto* begin = static_cast<const std::byte*>(value.host());
    all.emplace_back(begin, begin + value.bytes());
  }
  return all;
}

/// Whether allocation `number` of `work` was reached. Then it has failed, with an error that says so; else nothing has.
bool fails_at(std::int64_t number, const std::function<void()>& work) {
  const FailingAllocation failing(number);
  bool threw = false;
  try {
    work();
  } catch (const ResourceExhausted& error) {
    threw = true;
    EXPECT_NE(std::string(error.what()).find("made to fail"), std::string::npos) << error.what();
  }
  const bool reached = failing.count() > number;
  EXPECT_EQ(threw, reached) << "allocation " << number;
  return reached;
}

struct Kind {
  std::string name;
  Policy policy;
  std::function<Optimizer()> optimizer;
};

std::vector<Kind> kinds() {
  const Schedule cosine = CosineDecay({.initial_learning_rate = 0.1, .decay_steps = 50});
  return {{"adam", float32,
           [cosine] {
             return Adam({.learning_rate = cosine,
                          .weight_decay = 0.01,
                          .global_clipnorm = 0.1,
                          .use_ema = true,
                          .ema_overwrite_frequency = 2});
           }},
          {"loss scale", mixed_float16, [] { return SGD({.learning_rate = 0.1, .momentum = 0.9, .clipnorm = 0.1}); }},
          {"nadam", float32, [] { return Nadam({.learning_rate = 0.1}); }}};
}

struct Training {
  Tensor x = random::normal({7, 3}, {.seed = 1}), y = random::normal({7, 2}, {.seed = 2});
  Sequential model;
  Optimizer optimizer;

  /// `with_effects`: with layers that draw random numbers and move statistics.
  Training(const Kind& kind, bool with_effects)
      : model(with_effects ? std::vector<Module>{Dense(4, tanh), BatchNormalization(), Dropout(0.4), Dense(2)}
                           : std::vector<Module>{Dense(4, tanh), Dense(2)},
              {.policy = kind.policy}),
        optimizer(kind.optimizer()) {
    model.build({f32, {any_size, 3}});
    optimizer.build(model.trainable_variables());
    for (Tensor* data : {&x, &y}) data->observed();
    state();
  }
  Bits state() const { return bits_of(model.variables() + optimizer.variables()); }
  Loss step() {
    GradientTape tape;
    const Loss loss = MeanSquaredError()(y, cast(model(x, training), f32));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  }
};

/// The first call traces and is interpreted, the second compiles.
TEST(FailingAllocations, OfTheFirstCallsOfACompiledStep) {
  for (const Kind& kind : kinds())
    for (int before = 0; before < 2; ++before) {
      set_seed(5);
      Training undisturbed(kind, true);
      const auto reference = function([&] { return undisturbed.step(); });
      std::vector<Bits> wanted{undisturbed.state()};
      for (int i = 0; i < 3; ++i) {
        reference();
        wanted.push_back(undisturbed.state());
      }
      std::int64_t number = 0;
      for (bool reached = true; reached; ++number) {
        set_seed(5);
        Training disturbed(kind, true);
        const auto step = function([&] { return disturbed.step(); });
        for (int i = 0; i < before; ++i) step();
        const std::uint64_t random = random_state();
        reached = fails_at(number, [&] { step(); });
        if (!reached) break;
        ASSERT_EQ(disturbed.state(), wanted[static_cast<std::size_t>(before)]) << kind.name << ", " << number;
        EXPECT_EQ(random_state(), random);
        step();
        ASSERT_EQ(disturbed.state(), wanted[static_cast<std::size_t>(before) + 1]) << kind.name << ", " << number;
      }
      EXPECT_GT(number, 1);
    }
}

/// Steps beside those of an undisturbed training.
void expect_steps_survive(const std::string& name, Training& undisturbed, const std::function<void()>& reference,
                          Training& disturbed, const std::function<void()>& step) {
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t random = random_state();
    reference();
    set_random_state(random);
    step();
  }
  std::int64_t number = 0;
  for (bool reached = true; reached; ++number) {
    const std::uint64_t random = random_state();
    const Bits before = undisturbed.state();
    reference();
    set_random_state(random);
    reached = fails_at(number, step);
    if (reached) {
      ASSERT_EQ(disturbed.state(), before) << name << ", allocation " << number;
      set_random_state(random);
      step();
    }
    ASSERT_EQ(disturbed.state(), undisturbed.state()) << name << ", the step after allocation " << number;
  }
  EXPECT_GT(number, 1);
}

TEST(FailingAllocations, OfACompiledStep) {
  for (const Kind& kind : kinds()) {
    set_seed(5);
    Training a(kind, true);
    set_seed(5);
    Training b(kind, true);
    const auto of_a = function([&] { return a.step(); });
    const auto of_b = function([&] { return b.step(); });
    expect_steps_survive(kind.name, a, [&] { of_a(); }, b, [&] { of_b(); });
  }
}

TEST(FailingAllocations, OfAStepWithoutAFunction) {
  for (const Kind& kind : kinds())
    for (const bool looks : {true, false}) {
      set_seed(5);
      Training a(kind, false);
      set_seed(5);
      Training b(kind, false);
      const auto step_of = [looks](Training& training) {
        return [&training, looks] {
          const Loss loss = training.step();
          if (looks) loss.item();
          else synchronize();
        };
      };
      expect_steps_survive(kind.name, a, step_of(a), b, step_of(b));
    }
}

TEST(FailingAllocations, InFit) {
  const Kind kind{"sgd", float32, [] { return SGD({.learning_rate = 0.1, .momentum = 0.9, .clipvalue = 0.05}); }};
  const FitOptions options{.metrics = {MeanAbsoluteError()}, .verbose = false};
  for (const bool ahead : {false, true}) {
    const auto data_of = [&](const Training& t) {
      const Dataset<2> batches = data::from_tensor_slices(t.x, t.y).batch(4);
      return ahead ? batches.prefetch() : batches;
    };
    std::vector<Bits> wanted;
    for (int steps = 0; steps < 3; ++steps) {
      set_seed(5);
      Training t(kind, true);
      if (steps > 0) fit(t.model, t.optimizer, MeanSquaredError(), data_of(t).take(steps), options);
      wanted.push_back(t.state());
    }
    bool reached = true;
    std::int64_t number = 0;
    for (; reached; number += ahead ? 7 : 1) {
      set_seed(5);
      Training t(kind, true);
      const Dataset<2> dataset = data_of(t);
      reached = fails_at(number, [&] { fit(t.model, t.optimizer, MeanSquaredError(), dataset, options); });
      const std::int64_t done = t.optimizer.iterations();
      ASSERT_EQ(t.state(), wanted[static_cast<std::size_t>(done)]) << "allocation " << number;
      if (done == 2) continue;
      ASSERT_TRUE(reached);
      fit(t.model, t.optimizer, MeanSquaredError(), dataset.skip(done).take(1), options);
      ASSERT_EQ(t.state(), wanted[static_cast<std::size_t>(done) + 1]) << "after allocation " << number;
    }
    EXPECT_GT(number, 10);
  }
}

/// What was begun is made anew: no variable is there twice.
TEST(FailingAllocations, WhileModelAndOptimizerAreBuilt) {
  std::size_t of_model = 0, of_optimizer = 0;
  const Tensor x = random::normal({2, 3, 4}, {.seed = 1});
  x.observed();
  std::int64_t number = -1;
  for (bool reached = true; reached; ++number) {
    Sequential model{MultiHeadAttention(2, 3), BatchNormalization(), Dense(2)};
    Adam optimizer;
    const auto step = function([&] {
      GradientTape tape;
      const Loss loss = Loss::mean(reduce_mean(square(model(x, training)), {.axis = {-1}}));
      optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
      return loss;
    });
    reached = number < 0 || fails_at(number, [&] { step(); });
    if (reached) step();
    if (number < 0) {
      of_model = model.variables().size();
      of_optimizer = optimizer.variables().size();
    }
    EXPECT_EQ(model.variables().size(), of_model) << "allocation " << number;
    EXPECT_EQ(optimizer.variables().size(), of_optimizer) << "allocation " << number;
    EXPECT_EQ(optimizer.iterations(), 1) << "allocation " << number;
  }
  EXPECT_GT(number, 10);
}

}  // namespace
}  // namespace gradus::failing_allocations_test
