/// What all optimizers have in common: exclusions from decay, groups, moving averages, narrow types, loss scaling.
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/variable_cell.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "gradus/tensor/failing_allocation.h"
#include "tests/errors.h"

namespace gradus::settings_test {
namespace {

Variable number(double value, const std::string& name) { return Variable(constant({value}, f64), name); }

/// Gradients that are `value` everywhere.
Gradients all(const Variables& variables, double value) {
  std::vector<Tensor> means;
  for (const Variable& variable : variables) means.push_back(full(variable.shape(), value, variable.dtype()));
  return {variables, means, constant(1.0)};
}

TEST(WeightDecay, LeavesOutWhatIsExcluded) {
  Variable kernel = number(1, "dense/kernel"), bias = number(1, "dense/bias"), gamma = number(1, "norm/gamma");
  SGD optimizer({.learning_rate = 0.5, .weight_decay = 0.5});
  optimizer.exclude_from_weight_decay({"bias"});
  optimizer.exclude_from_weight_decay(Variables{gamma});
  optimizer.apply_gradients(all(Variables{kernel, bias, gamma}, 0));
  EXPECT_EQ(kernel.value().item(), 0.75);
  EXPECT_EQ(bias.value().item(), 1);
  EXPECT_EQ(gamma.value().item(), 1);
  optimizer.exclude_from_weight_decay({"kernel"});  // lazily, at any time
  SGD copy = optimizer;
  optimizer.apply_gradients(all(Variables{kernel, bias, gamma}, 0));
  EXPECT_EQ(kernel.value().item(), 0.75);
  Variable k2 = number(1, "k"), b2 = number(1, "b"), g2 = number(1, "g");
  copy.rebind(Variables{k2, b2, g2});  // goes by the place, not the name
  copy.apply_gradients(all(Variables{k2, b2, g2}, 0));
  for (const Variable& variable : Variables{k2, b2, g2}) EXPECT_EQ(variable.value().item(), 1);
}

TEST(WeightDecay, RefusesExclusionsThatNobodyWouldSee) {
  Variable w = number(1, "w");
  SGD optimizer({.weight_decay = 0.5});
  expect_says(error_of<InvalidArgument>([&] { optimizer.exclude_from_weight_decay({""}); }), "every name");
  const auto step = function([&] { optimizer.apply_gradients(all(Variables{w}, 1)); });
  step();
  expect_says(error_of<InvalidArgument>([&] { optimizer.exclude_from_weight_decay({"w"}); }), "compiled step");
}

TEST(ParameterGroups, HaveRatesAndDecaysOfTheirOwn) {
  Variable a = number(1, "a"), b = number(1, "b"), c = number(1, "c");
  const Variables variables{a, b, c};
  SGD optimizer({.learning_rate = 0.5, .weight_decay = 0.1});
  EXPECT_EQ(optimizer.add_parameter_group(
                Variables{b}, {.learning_rate = PiecewiseConstantDecay({0}, {0.25, 0.125}), .weight_decay = 0.0}),
            1u);
  EXPECT_EQ(optimizer.add_parameter_group(Variables{c}, {.weight_decay = 0.2}), 2u);
  const auto step = function([&] { optimizer.apply_gradients(all(variables, 1)); });
  EXPECT_EQ(optimizer.learning_rate(1), 0.25);
  step();
  EXPECT_NEAR(a.value().item(), 1 - 0.05 - 0.5, 1e-15);
  EXPECT_NEAR(b.value().item(), 0.75, 1e-15);
  EXPECT_NEAR(c.value().item(), 1 - 0.1 - 0.5, 1e-15);
  EXPECT_EQ(optimizer.learning_rate(1), 0.125);
  optimizer.set_learning_rate(0);
  optimizer.set_learning_rate(0.5, 1);
  step();
  EXPECT_NEAR(a.value().item(), 0.45, 1e-15);
  EXPECT_NEAR(b.value().item(), 0.25, 1e-15);
  EXPECT_NEAR(c.value().item(), 0.4, 1e-15);
  EXPECT_EQ(step.explain().variants, 1);
  Optimizer copy = optimizer;
  Variable a2 = number(1, "a"), b2 = number(1, "b"), c2 = number(1, "c");
  copy.rebind(Variables{a2, b2, c2});
  expect_says(error_of<InvalidArgument>([&] { copy.add_parameter_group(Variables{b2}, {}); }), "group 1 already");
  EXPECT_EQ(copy.learning_rate(1), 0.5);
  EXPECT_EQ(copy.learning_rate(2), 0);  // follows the first
}

TEST(ParameterGroups, RefuseWhatMakesNoSense) {
  Variable a = number(1, "a"), b = number(1, "b");
  SGD optimizer;
  optimizer.add_parameter_group(Variables{a}, {});
  expect_says(error_of<InvalidArgument>([&] { optimizer.add_parameter_group(Variables{a}, {}); }), "group 1 already");
  expect_says(error_of<InvalidArgument>([&] { optimizer.add_parameter_group(Variables{}, {}); }), "no variables");
  expect_says(error_of<InvalidArgument>([&] { optimizer.add_parameter_group(Variables{b}, {.weight_decay = -1.0}); }),
              "weight_decay");
  expect_says(
      error_of<InvalidArgument>([&] { optimizer.add_parameter_group(Variables{b}, {.learning_rate = std::nan("")}); }),
      "finite");
  expect_says(error_of<InvalidArgument>([&] { optimizer.set_learning_rate(1, 1); }), "follows group 0");
  EXPECT_THROW(optimizer.learning_rate(2), OutOfRange);
  EXPECT_THROW(optimizer.set_learning_rate(1, 2), OutOfRange);
  EXPECT_EQ(optimizer.learning_rate(1), 0.01);
}

/// Variables of a model, and a change from one optimizer of them to another.
struct Pair {
  Variable kernel = number(1, "dense/kernel"), bias = number(2, "dense/bias");
  Variables both() { return Variables{kernel, bias}; }
};
struct Change {
  const char* name;
  std::function<Optimizer(Pair&)> from, to;
  bool is_read = false;  // a compiled step goes on with it
};

Optimizer made(SGDOptions options) { return SGD(std::move(options)); }
Optimizer halving() { return made({.learning_rate = PiecewiseConstantDecay({1}, {0.5, 0.25})}); }
Optimizer decaying() { return made({.learning_rate = 0.5, .weight_decay = 0.25}); }

const Change changes[] = {
    {"nothing", [](Pair&) { return made({.momentum = 0.5}); }, [](Pair&) { return made({.momentum = 0.5}); }, true},
    {"rate", [](Pair&) { return made({}); }, [](Pair&) { return made({.learning_rate = 0.25}); }, true},
    {"same_schedule", [](Pair&) { return halving(); }, [](Pair&) { return halving(); }, true},
    {"schedule", [](Pair&) { return made({}); }, [](Pair&) { return halving(); }},
    {"other_schedule", [](Pair&) { return halving(); },
     [](Pair&) { return made({.learning_rate = PiecewiseConstantDecay({1}, {0.5, 0.125})}); }},
    {"rule", [](Pair&) { return made({.momentum = 0.5}); }, [](Pair&) { return made({.momentum = 0.25}); }},
    {"clipnorm", [](Pair&) { return made({}); }, [](Pair&) { return made({.clipnorm = 0.5}); }},
    {"clipvalue", [](Pair&) { return made({.clipvalue = 4}); }, [](Pair&) { return made({.clipvalue = 0.5}); }},
    {"decay", [](Pair&) { return made({.learning_rate = 0.5}); }, [](Pair&) { return decaying(); }},
    {"excluded_by_name", [](Pair&) { return decaying(); },
     [](Pair&) {
       Optimizer optimizer = decaying();
       optimizer.exclude_from_weight_decay({"bias"});
       return optimizer;
     }},
    {"excluded", [](Pair&) { return decaying(); },
     [](Pair& pair) {
       Optimizer optimizer = decaying();
       optimizer.exclude_from_weight_decay(Variables{pair.bias});
       return optimizer;
     }},
    {"member_of_a_group",
     [](Pair& pair) {
       Optimizer optimizer = made({});
       optimizer.add_parameter_group(Variables{pair.kernel}, {.learning_rate = 0.125});
       return optimizer;
     },
     [](Pair& pair) {
       Optimizer optimizer = made({});
       optimizer.add_parameter_group(Variables{pair.bias}, {.learning_rate = 0.125});
       return optimizer;
     }},
};

TEST(Assigning, MakesAnOptimizerThatStepsAsACopyDoes) {
  for (const Change& change : changes) {
    Pair target, source, copied;
    Optimizer assigned = change.from(target), other = change.to(source);
    assigned.build(target.both());
    other.apply_gradients(all(source.both(), 1));
    Optimizer copy = other;
    copy.rebind(copied.both());
    assigned = other;
    for (int i = 0; i < 3; ++i) {
      assigned.apply_gradients(all(target.both(), 2));
      copy.apply_gradients(all(copied.both(), 2));
    }
    EXPECT_EQ(target.kernel.value().item(), copied.kernel.value().item()) << change.name;
    EXPECT_EQ(target.bias.value().item(), copied.bias.value().item()) << change.name;
    EXPECT_EQ(assigned.iterations(), 4) << change.name;
  }
}

TEST(Assigning, IsRefusedIfACompiledStepWouldNotNotice) {
  for (const Change& change : changes) {
    Pair target, source, copied;
    Optimizer assigned = change.from(target), other = change.to(source);
    const auto step = function([&] { assigned.apply_gradients(all(target.both(), 2)); });
    step();
    for (int i = 0; i < 2; ++i) other.apply_gradients(all(source.both(), 1));
    if (!change.is_read) {
      expect_says(error_of<InvalidArgument>([&] { assigned = other; }), "compiled step");
      EXPECT_EQ(assigned.iterations(), 1) << change.name;
      continue;
    }
    Optimizer copy = other;
    copy.rebind(copied.both());
    copied.kernel.assign(target.kernel);
    copied.bias.assign(target.bias);
    assigned = other;
    step();
    copy.apply_gradients(all(copied.both(), 2));
    EXPECT_EQ(target.kernel.value().item(), copied.kernel.value().item()) << change.name;
    EXPECT_EQ(target.bias.value().item(), copied.bias.value().item()) << change.name;
    EXPECT_EQ(step.explain().variants, 1) << change.name;
  }
}

/// Groups that have a rate of their own are listed in the order of groups: as many elsewhere are others.
TEST(Assigning, IsRefusedIfOtherGroupsHaveRates) {
  Pair target, source;
  Optimizer assigned = decaying(), other = decaying();
  assigned.add_parameter_group(Variables{target.kernel}, {.learning_rate = 0.125});
  assigned.add_parameter_group(Variables{target.bias}, {.weight_decay = 0});
  other.add_parameter_group(Variables{source.kernel}, {.weight_decay = 0});
  other.add_parameter_group(Variables{source.bias}, {.learning_rate = 0.5});
  assigned.build(target.both());
  other.build(source.both());
  expect_says(error_of<InvalidArgument>([&] { assigned = other; }), "different state");
  EXPECT_EQ(assigned.learning_rate(1), 0.125);
}

TEST(Assigning, KnowsAScheduleOfNumbersOfItsOwnAgain) {
  Pair pair;
  Optimizer optimizer = made({.learning_rate = Schedule([](const Tensor& step) {
                                return gather(constant({0.5, 0.25}), minimum(step, full({}, 1, i64)));
                              })});
  const auto step = function([&] { optimizer.apply_gradients(all(pair.both(), 2)); });
  step();
  const Optimizer saved = optimizer;
  step();
  optimizer = saved;
  EXPECT_EQ(optimizer.iterations(), 1);

  // A Variable is another number than an equal one, and itself whatever it holds.
  Pair target, source, alike;
  Variable rate(constant(0.5, f64)), other(constant(0.5, f64));
  const auto reading = [](Variable& v) {
    return made({.learning_rate = Schedule([&v](const Tensor&) { return v.value(); })});
  };
  Optimizer stepping = reading(rate), of_other = reading(other), of_same = reading(rate);
  const auto next = function([&] { stepping.apply_gradients(all(target.both(), 2)); });
  next();
  of_other.build(source.both());
  of_same.build(alike.both());
  expect_says(error_of<InvalidArgument>([&] { stepping = of_other; }), "compiled step");
  stepping = of_same;
  EXPECT_EQ(stepping.iterations(), 0);
}

TEST(MovingAverages, FollowTheirRule) {
  Variable w = number(1, "w");
  SGD optimizer({.learning_rate = 0.5, .use_ema = true, .ema_momentum = 0.9, .ema_overwrite_frequency = 3});
  const auto step = function([&] { optimizer.apply_gradients(all(Variables{w}, 1)); });
  double plain = 1, average = 0;
  for (int t = 1; t <= 8; ++t) {
    step();
    plain -= 0.5;
    average = t == 1 ? plain : 0.9 * average + 0.1 * plain;
    if (t % 3 == 0) plain = average;
    EXPECT_NEAR(w.value().item(), plain, 1e-12) << t;
  }
  EXPECT_EQ(optimizer.variables()[2].name(), "sgd/w/average");
  optimizer.finalize_variable_values(Variables{w});
  EXPECT_NEAR(w.value().item(), average, 1e-12);
  Variable other = number(1, "other");
  EXPECT_THROW(optimizer.finalize_variable_values(Variables{other}), InvalidArgument);
  EXPECT_EQ(step.explain().variants, 1);
}

TEST(MovingAverages, ADisabledOneWritesNothing) {
  Variable w = number(1, "w");
  SGD optimizer;
  optimizer.apply_gradients(all(Variables{w}, 0));
  optimizer.finalize_variable_values(Variables{w});
  EXPECT_EQ(w.value().item(), 1);
  EXPECT_EQ(optimizer.variables().size(), 2u);
}

/// A variable of a narrow type: the step itself is that of f32.
TEST(NarrowVariables, AreUpdatedInFloat) {
  for (DType t : {f16, bf16}) {
    Variable narrow(constant({1.5, -0.25}, t), "narrow"), wide(constant({1.5, -0.25}), "wide");
    Adam one({.learning_rate = 0.125}), other({.learning_rate = 0.125});
    for (int i = 0; i < 3; ++i) {
      one.apply_gradients(all(Variables{narrow}, 0.5));
      wide.assign(cast(cast(wide, t), f32));
      other.apply_gradients(all(Variables{wide}, 0.5));
    }
    EXPECT_EQ(one.variables()[2].dtype(), f32);
    EXPECT_EQ(narrow.dtype(), t);
    EXPECT_TRUE(bitwise_equal(narrow.value(), cast(wide, t)));
    EXPECT_TRUE(bitwise_equal(one.variables()[3].value(), other.variables()[3].value()));
  }
}

/// One variable that its user's policy scales.
struct Scaled {
  Variable w{constant({1.0, 2.0}), "w"};
  std::shared_ptr<LossScale> scale = std::make_shared<LossScale>();
  Scaled() { w.cell()->loss_scale = scale; }
  Variables variables() { return Variables{w}; }
  Gradients gradients(const Tensor& factor) {
    GradientTape tape;
    return tape.gradient(Loss::mean(factor * w), variables());
  }
};

TEST(LossScaling, GradientsAreWhatTheyWouldBeWithout) {
  Scaled scaled;
  const Tensor factor = constant({3.0, -5.0});
  const Gradients gradients = scaled.gradients(factor);
  EXPECT_EQ(gradients[0].to_vector<float>(), (std::vector<float>{1.5, -2.5}));
  // What would vanish in f16 on the way does not, in a list or alone.
  GradientTape tape({.persistent = true});
  const Tensor narrow = cast(scaled.w, f16) * fill({}, 1e-4, f16);
  const Loss small = Loss::mean(cast(narrow, f32) * 1e-5);
  const Tensor listed = tape.gradient(small, scaled.variables())[0];
  EXPECT_NEAR(listed.to_vector<float>()[0], 0.5e-9, 1e-11);
  EXPECT_TRUE(bitwise_equal(tape.gradient(small, scaled.w), listed));
  EXPECT_TRUE(bitwise_equal(tape.gradient(small.value(), scaled.w), listed));
}

TEST(LossScaling, AStepThatIsNotFiniteChangesNothingAndHalvesTheScale) {
  for (const bool compiled : {false, true}) {
    Scaled scaled;
    Nadam optimizer({.global_clipnorm = 1, .use_ema = true});
    const auto step = function([&](Tensor factor) { optimizer.apply_gradients(scaled.gradients(factor)); },
                               {.run_eagerly = !compiled});
    step(constant({1.0, 1.0}));
    std::vector<Tensor> before;
    const Variables kept = optimizer.variables().filter(
        [](std::string_view name) { return !name.starts_with("loss_scale") && !name.ends_with("skipped_steps"); });
    for (const Variable& variable : kept) before.push_back(variable.value());
    const Tensor w = scaled.w;
    for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) step(constant({bad, 1.0}));
    EXPECT_TRUE(bitwise_equal(w, scaled.w.value()));
    for (std::size_t i = 0; i < kept.size(); ++i)
      EXPECT_TRUE(bitwise_equal(before[i], kept[i].value())) << kept[i].name();
    EXPECT_EQ(optimizer.iterations(), 1);
    EXPECT_EQ(optimizer.skipped_steps(), 2);
    EXPECT_EQ(scaled.scale->value(), LossScale::initial / 4);
    step(constant({1.0, 1.0}));
    EXPECT_FALSE(bitwise_equal(w, scaled.w.value()));
    EXPECT_EQ(optimizer.iterations(), 2);
    EXPECT_EQ(step.explain().variants, compiled ? 1 : 0);
  }
}

TEST(LossScaling, FiniteIsAskedBeforeClipping) {
  Scaled scaled;
  SGD optimizer;
  const Tensor w = scaled.w;
  const auto step =
      function([&](Tensor factor) { optimizer.apply_gradients(clip_by_value(scaled.gradients(factor), -1, 1)); });
  step(constant({std::numeric_limits<double>::infinity(), 1.0}));
  EXPECT_EQ(optimizer.skipped_steps(), 1);
  EXPECT_TRUE(bitwise_equal(w, scaled.w.value()));
  SGD own({.clipvalue = 1});
  own.apply_gradients(scaled.gradients(constant({-std::numeric_limits<double>::infinity(), 1.0})));
  EXPECT_EQ(own.skipped_steps(), 1);
  EXPECT_TRUE(bitwise_equal(w, scaled.w.value()));
}

TEST(LossScaling, TheScaleGrowsAndMayFallBelowOne) {
  LossScale scale;
  const Tensor finite = fill({}, 1, boolean), not_finite = fill({}, 0, boolean);
  const auto update = function([&](Tensor ok) { scale.update(ok); });
  for (int i = 1; i < LossScale::steps_to_grow; ++i) update(finite);
  EXPECT_EQ(scale.value(), LossScale::initial);
  update(finite);
  EXPECT_EQ(scale.value(), 2 * LossScale::initial);
  for (int i = 1; i < LossScale::steps_to_grow; ++i) update(finite);
  update(not_finite);  // the row begins anew
  update(finite);
  EXPECT_EQ(scale.value(), LossScale::initial);
  for (int i = 0; i < 20; ++i) update(not_finite);
  EXPECT_EQ(scale.value(), LossScale::initial / (1 << 20));
  for (int i = 0; i < 200; ++i) update(not_finite);
  EXPECT_EQ(scale.value(), LossScale::least);
}

TEST(LossScaling, AFixedOneStaysAndGrowthIsAnOption) {
  LossScale fixed({.initial = 1024, .dynamic = false}), quick({.initial = 8, .steps_to_grow = 2});
  const Tensor finite = fill({}, 1, boolean), not_finite = fill({}, 0, boolean);
  const auto update = function([&](Tensor ok) { fixed.update(ok), quick.update(ok); });
  for (int i = 0; i < 4; ++i) update(finite);
  EXPECT_EQ(fixed.value(), 1024);
  EXPECT_EQ(quick.value(), 32);
  update(not_finite);
  EXPECT_EQ(fixed.value(), 1024);
  EXPECT_EQ(quick.value(), 16);
}

/// Whatever fails, and whatever waited before.
TEST(LossScaling, ScaleAndCountChangeTogether) {
  int failures = 0;
  for (std::int64_t number = 0; number < 40; ++number) {
    LossScale scale;
    const Tensor finite = fill({}, 1, boolean), not_finite = fill({}, 0, boolean);
    scale.update(finite);
    if (number % 2 == 1) { EXPECT_EQ(scale.value(), LossScale::initial) << "nothing waits now"; }
    try {
      const FailingAllocation failing(number / 2);
      scale.update(not_finite);
      scale.update(not_finite);
      scale.value();
    } catch (const ResourceExhausted&) { ++failures; }
    const double now = scale.value();
    const auto count = scale.variables()[1].value().to_vector<std::int64_t>()[0];
    const bool undone = number % 2 == 0 && count == 0;  // the first update waited, and failed as well
    EXPECT_TRUE(now == LossScale::initial ? count == 1 || undone : count == 0)
        << "allocation " << number / 2 << ", scale " << now << ", count " << count;
    EXPECT_TRUE(now == LossScale::initial || now == LossScale::initial / 2 || now == LossScale::initial / 4) << now;
  }
  EXPECT_GT(failures, 0);
}

TEST(LossScaling, AccumulatesUnscaled) {
  Scaled scaled;
  Gradients total;
  total += scaled.gradients(constant({2.0, 4.0}));
  scaled.scale->update(fill({}, 0, boolean));  // another scale in between
  total += scaled.gradients(constant({4.0, 8.0}));
  EXPECT_EQ(total[0].to_vector<float>(), (std::vector<float>{1.5, 3}));
}

TEST(LossScaling, IsPartOfTheStateForCheckpoints) {
  Scaled scaled;
  SGD optimizer;
  optimizer.build(scaled.variables());
  const Variables variables = optimizer.variables();
  EXPECT_EQ(variables[variables.size() - 2].name(), "loss_scale");
  EXPECT_EQ(variables[variables.size() - 3].name(), "sgd/skipped_steps");
}

TEST(LossScaling, TwoScalesAreRefused) {
  Scaled one, other;
  GradientTape tape;
  const Tensor target = reduce_sum(one.w * other.w);
  expect_says(error_of<InvalidArgument>([&] { tape.gradient(target, Variables{one.w, other.w}); }),
              "another loss scale");
}

}  // namespace
}  // namespace gradus::settings_test
