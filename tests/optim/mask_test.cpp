/// Masks of Variables: what is masked is 0 and without gradient whoever assigns, and the rest goes as if there were no
/// mask.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/function/function.h"
#include "gradus/gradients/batches.h"
#include "gradus/gradients/per_example.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/optimizers.h"
#include "tests/errors.h"

namespace gradus::mask_test {
namespace {

Tensor every_third() { return equal(mod(range(30), 3), 1); }

/// Elementwise, so that elements train without knowing of each other.
Tensor error_of_fit(const Variable& w, const Tensor& goal) {
  return reduce_sum(square(w - goal) + abs(w.value() * 0.1));
}

std::vector<std::pair<const char*, Optimizer>> all_optimizers() {
  return {
      {"SGD", SGD({.learning_rate = 0.1})},
      {"momentum", SGD({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1})},
      {"nesterov", SGD({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true})},
      {"average", SGD({.learning_rate = 0.1, .momentum = 0.9, .use_ema = true, .ema_momentum = 0.5})},
      {"overwriting", Adam({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 2})},
      {"clipvalue", SGD({.learning_rate = 0.1, .momentum = 0.9, .clipvalue = 0.3})},
      {"RMSprop", RMSprop({.learning_rate = 0.1, .momentum = 0.9, .centered = true})},
      {"Adam", Adam({.learning_rate = 0.1})},
      {"AMSGrad", Adam({.learning_rate = 0.1, .amsgrad = true})},
      {"AdamW", AdamW({.learning_rate = 0.1, .weight_decay = 0.1})},
      {"Nadam", Nadam({.learning_rate = 0.1})},
      {"Adamax", Adamax({.learning_rate = 0.1})},
      {"Adagrad", Adagrad({.learning_rate = 0.1})},
      {"Adadelta", Adadelta({.learning_rate = 1.0})},
      {"Ftrl", Ftrl({.learning_rate = 0.1, .l1_regularization_strength = 0.01, .beta = 0.1})},
      {"Lion", Lion({.learning_rate = 0.1, .weight_decay = 0.1})}};
}

TEST(Mask, HoldsUnderEveryOptimizerAndLeavesTheRestAlone) {
  const Tensor first = random::normal({30}, {.seed = 1}), goal = random::normal({30}, {.seed = 2});
  for (const bool compiled : {false, true})
    for (auto& [name, optimizer] : all_optimizers()) {
      Variable masked(first, "w"), free(first, "w");
      Optimizer of_masked = optimizer, of_free = optimizer;
      const auto train = [&](Variable& w, Optimizer& o) {
        GradientTape tape;
        const Tensor loss = error_of_fit(w, goal);
        o.apply_gradients(tape.gradient(loss, Variables{w}));
      };
      const std::function<void()> step = [&] { train(masked, of_masked), train(free, of_free); };
      const auto both = function([&] { step(); });
      for (int i = 0; i < 8; ++i) {
        if (i == 3) masked.set_mask(equal(mod(range(30), 6), 0));  // with momentum of what is masked now
        if (i == 5) masked.set_mask(equal(mod(range(30), 12), 0));
        if (compiled) both();
        else step();
      }
      of_masked.finalize_variable_values(Variables{masked});
      of_free.finalize_variable_values(Variables{free});
      const Tensor kept = masked.mask();
      EXPECT_TRUE(bitwise_equal(masked, where(kept, free, zeros({30})))) << name << (compiled ? " compiled" : " lazy");
      if (compiled) { EXPECT_EQ(both.explain().retraces.size(), 1u) << name << ": another mask is no retrace"; }
    }
}

TEST(Mask, OfATableWhoseGradientIsOfRows) {
  const Tensor tokens = constant({0, 3, 3, 5}), goal = random::normal({4, 2}, {.seed = 2});
  const Tensor kept = reshape(equal(mod(range(12), 3), 0), {6, 2});
  for (const bool compiled : {false, true}) {
    Variable masked(random::normal({6, 2}, {.seed = 1}), "masked"), free(masked.value(), "free");
    masked.set_mask(kept);
    Adam of_masked({.learning_rate = 0.1}), of_free({.learning_rate = 0.1});
    const auto train = [&](Variable& table, Optimizer& optimizer) {
      GradientTape tape;
      const Tensor loss = reduce_sum(square(gather(table, tokens) - goal));
      optimizer.apply_gradients(tape.gradient(loss, Variables{table}));
    };
    const auto both = function([&] { train(masked, of_masked), train(free, of_free); });
    for (int i = 0; i < 4; ++i) {
      if (compiled) both();
      else train(masked, of_masked), train(free, of_free);
    }
    EXPECT_TRUE(bitwise_equal(masked, where(kept, masked, zeros({6, 2})))) << compiled;
    EXPECT_LT(max_abs_difference(masked, where(kept, free, zeros({6, 2}))), 1e-6) << compiled;
  }
}

TEST(Mask, HoldsUnderLambAndClippingByNorms) {
  const Tensor goal = random::normal({30}, {.seed = 2});
  for (const Optimizer& given :
       std::vector<Optimizer>{Lamb({.learning_rate = 0.1}), Adam({.learning_rate = 0.1, .global_clipnorm = 0.5}),
                              Adam({.learning_rate = 0.1, .clipnorm = 0.5})}) {
    Optimizer optimizer = given;
    Variable w(random::normal({30}, {.seed = 1}), "w");
    for (int i = 0; i < 6; ++i) {
      if (i == 3) w.set_mask(every_third());
      GradientTape tape;
      optimizer.apply_gradients(tape.gradient(error_of_fit(w, goal), Variables{w}));
    }
    EXPECT_EQ(reduce_sum(cast(not_equal(w.value(), 0), i32)).to_vector<std::int32_t>()[0], 10);
  }
}

TEST(Mask, GradientsOfWhatIsMaskedAreZeroHoweverTheyAreAsked) {
  const Tensor x = random::normal({4, 30}, {.seed = 3});
  Variable w(random::normal({30}, {.seed = 1}), "w");
  w.set_mask(every_third());
  const Variables sources{w};
  const Tensor expected = where(every_third(), reduce_sum(x * x * w.value(), {.axis = {0}}) * 2, zeros({30}));
  const auto loss_of = [&](const Tensor& rows) { return reduce_sum(square(rows * w)); };
  const auto expect = [&](const Tensor& gradient, const char* what) {
    EXPECT_LT(max_abs_difference(gradient, expected), 1e-4) << what;
    EXPECT_TRUE(bitwise_equal(gradient, where(every_third(), gradient, zeros({30})))) << what;
  };
  {
    GradientTape tape({.persistent = true});
    const Tensor loss = loss_of(x);
    expect(tape.gradient(loss, sources)[0], "of a list");
    expect(tape.gradient(loss, w), "of one");
  }
  const auto part = [&](Tensor rows) { return Loss::of(loss_of(rows)); };
  const LossAndGradients parts = accumulated_gradients(part, sources, {x}, {.micro_batch = 2});
  expect(parts.gradients[0] * 2, "accumulated: a mean of two parts");
  const auto losses = [&](Tensor rows) { return reduce_sum(square(rows * w), {.axis = {1}}); };
  expect(per_example_gradients(losses, sources, {x}).sum()[0] * 4, "of examples");
  const auto traced = function([&](Tensor rows) {
    GradientTape tape;
    return tape.gradient(loss_of(rows), w);
  });
  expect(traced(x), "traced");
  GradientTape tape;
  const Tensor unconnected = tape.gradient(reduce_sum(x), sources, {.unconnected = Unconnected::zero})[0];
  EXPECT_TRUE(bitwise_equal(unconnected, zeros({30})));
}

TEST(Mask, AGradientThatIsNotFiniteWhereItIsMaskedDoesNoHarm) {
  Variable w(constant({0.f, 4.f}), "w");
  w.set_mask(constant({0, 1}));
  GradientTape tape;
  EXPECT_EQ(tape.gradient(reduce_sum(sqrt(w)), w).to_vector<float>(), (std::vector<float>{0, 0.25f}));
}

TEST(Mask, HoldsWhateverIsAssigned) {
  for (const DType t : {f64, f32, f16, bf16, i32}) {
    Variable w(full({2, 2}, 3, t), "w");
    EXPECT_FALSE(w.mask().defined());
    w.set_mask(constant({{1, 0}, {0, 7}}));
    EXPECT_EQ(w.mask().to_vector<bool>(), (std::vector<bool>{true, false, false, true}));
    const auto now = [&] { return cast(w, f64).to_vector<double>(); };
    EXPECT_EQ(now(), (std::vector<double>{3, 0, 0, 3})) << t;
    w.assign(full({2, 2}, 5, t));
    EXPECT_EQ(now(), (std::vector<double>{5, 0, 0, 5})) << t;
    w.assign_add(full({2, 2}, 1, t));
    w.assign_sub(full({2, 2}, 2, t));
    EXPECT_EQ(now(), (std::vector<double>{4, 0, 0, 4})) << t;
    w.set_mask(ones({2, 2}));
    EXPECT_EQ(now(), (std::vector<double>{4, 0, 0, 4})) << t << ": open again, but still 0";
    w.assign(full({2, 2}, 5, t));
    EXPECT_EQ(now(), (std::vector<double>{5, 5, 5, 5})) << t;
    w.set_mask(zeros({2, 2}, t));
    w.set_mask(Tensor());
    EXPECT_FALSE(w.mask().defined());
    EXPECT_EQ(now(), (std::vector<double>{0, 0, 0, 0})) << t;
    w.assign(full({2, 2}, 5, t));
    EXPECT_EQ(now(), (std::vector<double>{5, 5, 5, 5})) << t;
  }
  Variable none(zeros({0, 3}), "none"), scalar(constant(2.0), "scalar"), nan(constant({1.f, 2.f}), "nan");
  none.set_mask(zeros({0, 3}));
  scalar.set_mask(constant(0.0));
  EXPECT_EQ(none.value().shape(), (Shape{0, 3}));
  EXPECT_EQ(scalar.value().item(), 0);
  nan.set_mask(constant({std::nanf(""), 0.f}));
  nan.assign(constant({std::nanf(""), std::nanf("")}));
  EXPECT_TRUE(std::isnan(nan.value()[0].item())) << "a mask of NaN is not 0";
  EXPECT_EQ(nan.value()[1].item(), 0);
}

TEST(Mask, BelongsToTheVariableAlone) {
  Variable w(ones({3}), "w");
  w.set_mask(constant({1, 0, 1}));
  Variable copy(w);
  w.set_mask(constant({0, 0, 1}));
  copy.assign(full({3}, 2));
  EXPECT_EQ(copy.value().to_vector<float>(), (std::vector<float>{2, 0, 2}));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{0, 0, 1}));

  Sequential model{Dense(2)};
  model.build({f32, {any_size, 2}});
  model.variables()[0].set_mask(constant({{1, 0}, {0, 1}}));
  Sequential other = model, third{Dense(2)};
  third.build({f32, {any_size, 2}});
  third = model;
  for (const Sequential* each : {&model, &other, &third}) {
    each->variables()[0].assign(ones({2, 2}));
    EXPECT_EQ(each->variables()[0].value().to_vector<float>(), (std::vector<float>{1, 0, 0, 1}));
  }
  Sequential fresh{Dense(2)};
  fresh.build({f32, {any_size, 2}});
  third = fresh;
  EXPECT_FALSE(third.variables()[0].mask().defined()) << "an assigned model is as the other";
  EXPECT_TRUE(bitwise_equal(third.variables()[0], fresh.variables()[0]));
}

TEST(Mask, TheFirstOneAndItsEndAreNoticedByCompiledFunctions) {
  Variable w(ones({3}), "w");
  const auto add = function([&](Tensor x) { w.assign_add(x); });
  add(ones({3}));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{2, 2, 2}));
  w.set_mask(constant({1, 0, 1}));
  add(ones({3}));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{3, 0, 3}));
  ASSERT_EQ(add.explain().retraces.size(), 1u);
  expect_says(add.explain().retraces[0].reason, "variable w");
  expect_says(add.explain().retraces[0].reason, "mask");
  w.set_mask(constant({1, 1, 0}));
  add(ones({3}));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{4, 1, 0}));
  EXPECT_EQ(add.explain().retraces.size(), 1u);
  w.set_mask(Tensor());
  add(ones({3}));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{5, 2, 1}));
  EXPECT_EQ(add.explain().retraces.size(), 2u);
}

TEST(Mask, MayBeReplacedWithinACompiledFunction) {
  Variable w(constant({1.f, 5.f, 3.f}), "w");
  w.set_mask(ones({3}));
  const auto prune = function([&](Tensor threshold) {
    w.set_mask(abs(w.value()) > threshold);
    w.assign_add(ones({3}));
  });
  prune(constant(2.0));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{0, 6, 4}));
  prune(constant(4.0));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{0, 7, 0}));
  EXPECT_EQ(w.mask().to_vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(prune.explain().variants, 1);
}

TEST(Mask, RefusesWhatDoesNotFitAndChangesNothing) {
  Variable w(ones({3}), "kernel");
  const std::string shape = error_of<InvalidArgument>([&] { w.set_mask(ones({2})); });
  for (const char* part : {"kernel", "(3)", "[2]"}) expect_says(shape, part);
  const auto first = function([&](Tensor m) { w.set_mask(m); });
  expect_says(error_of<InvalidArgument>([&] { first(ones({3})); }), "outside");
  w.set_mask(ones({3}));
  const auto end = function([&](Tensor x) {
    w.set_mask(Tensor());
    return x;
  });
  expect_says(error_of<InvalidArgument>([&] { end(ones({3})); }), "outside");
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_TRUE(w.mask().defined());
}

}  // namespace
}  // namespace gradus::mask_test
