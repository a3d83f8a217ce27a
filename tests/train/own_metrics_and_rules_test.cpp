/// Metrics and update rules that a program writes for itself, with the public header alone.
#include "gradus/gradus.h"
#include <gtest/gtest.h>
#include <cmath>
#include <numeric>
#include "tests/errors.h"

namespace gradus::own_metrics_and_rules_test {
namespace {

/// Pearson's correlation of y and prediction, from weighted sums of powers.
struct Correlation : Metric {
  Correlation()
      : Metric(
            "correlation", 6,
            [](const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) {
              const Tensor a = cast(y, f64), b = cast(prediction, f64), w = weights(sample_weight, prediction);
              const auto sum = [&](const Tensor& x) { return reduce_sum(w * x); };
              return stack({reduce_sum(w), sum(a), sum(b), sum(a * a), sum(b * b), sum(a * b)});
            },
            [](std::span<const double> t) {
              const double covariance = t[5] - t[1] * t[2] / t[0];
              return covariance / std::sqrt((t[3] - t[1] * t[1] / t[0]) * (t[4] - t[2] * t[2] / t[0]));
            }) {}
};

double correlation(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& w) {
  const double n = std::accumulate(w.begin(), w.end(), 0.0);
  double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) ma += w[i] * a[i] / n, mb += w[i] * b[i] / n;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += w[i] * (a[i] - ma) * (b[i] - mb);
    aa += w[i] * (a[i] - ma) * (a[i] - ma);
    bb += w[i] * (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

const Tensor ys = random::stateless_normal({24}, constant({1, 2})),
             predictions = ys + random::stateless_normal({24}, constant({3, 4}));
const Tensor some_weights = random::stateless_uniform({24}, constant({5, 6}));

TEST(OwnMetrics, AddUpOverBatches) {
  const double whole = correlation(ys.to_vector<float>(), predictions.to_vector<float>(), std::vector<float>(24, 1));
  const double weighted =
      correlation(ys.to_vector<float>(), predictions.to_vector<float>(), some_weights.to_vector<float>());
  Correlation plain, heavy, traced;
  const auto update = function([&](const Tensor& y, const Tensor& p) {
    traced.update(y, p);
    return p;
  });
  for (std::int64_t i = 0; i < 24; i += 8) {
    plain.update(ys.rows(i, i + 8), predictions.rows(i, i + 8));
    heavy.update(ys.rows(i, i + 8), predictions.rows(i, i + 8), some_weights.rows(i, i + 8));
    update(ys.rows(i, i + 8), predictions.rows(i, i + 8));
  }
  EXPECT_NEAR(plain.result(), whole, 1e-6);
  EXPECT_NEAR(heavy.result(), weighted, 1e-6);
  EXPECT_NEAR(traced.result(), whole, 1e-6);
  Correlation copy = plain;
  plain.reset();
  EXPECT_NEAR(copy.result(), whole, 1e-6);
}

TEST(OwnMetrics, MayHaveSeveralResults) {
  Metric extremes(
      "mean_and_count", 2,
      [](const Tensor&, const Tensor& p, const Tensor& w) {
        const Tensor weight = Metric::weights(w, p);
        return stack({reduce_sum(weight * cast(p, f64)), reduce_sum(weight)});
      },
      [](std::span<const double> t) { return std::vector{t[0] / t[1], t[1]}; });
  extremes.update(ys, ones({24}) * 3, some_weights);
  EXPECT_NEAR(extremes.results()[0], 3, 1e-6);
  EXPECT_EQ(extremes.result_names(), (std::vector<std::string>{"mean_and_count_0", "mean_and_count_1"}));
}

TEST(OwnMetrics, MistakesAreNamed) {
  const auto gather = [](const Tensor&, const Tensor& p, const Tensor&) { return reshape(reduce_sum(p), {1}); };
  const auto finish = [](std::span<const double> t) { return t[0]; };
  EXPECT_THROW(Metric("", 1, gather, finish), InvalidArgument);
  for (const std::int64_t count : {0, -1, -5})
    expect_says(error_of<InvalidArgument>([&] { Metric("m", count, gather, finish); }), text("it has ", count));
  EXPECT_THROW(Metric("m", 1, gather, Metric::Finish()), InvalidArgument);
  EXPECT_THROW(Metric::weights(ones({3}), ones({4})), InvalidArgument);
}

/// Momentum as SGD has it; and the mean of the learning rates so far, as a joint state.
struct HeavyBallRule final : UpdateRule {
  const double momentum;
  explicit HeavyBallRule(double m) : momentum(m) {}
  std::string_view name() const override { return "heavy_ball"; }
  std::vector<Slot> slots() const override { return {{.name = "momentum"}}; }
  std::vector<double> joint_state() const override { return {1}; }
  Shared share(const StepNumbers& step, std::span<const Tensor> joint) const override {
    return {{step.learning_rate}, {joint[0] * number(0.5)}};
  }
  Updated update(const Tensor& w, const Tensor& g, std::span<const Tensor> slots,
                 std::span<const Tensor> shared) const override {
    const Tensor m = slots[0] * momentum - shared[0] * g;
    return {w + m, {m}};
  }
};
struct HeavyBall : Optimizer {
  HeavyBall(Schedule rate, double momentum)
      : Optimizer(std::make_shared<HeavyBallRule>(momentum), {.learning_rate = std::move(rate)}) {}
};

Sequential model() {
  set_seed(7);
  return Sequential{Dense(4, relu), Dense(1)};
}

TEST(OwnRules, TrainAsTheLibrarysWithTheSameFormulas) {
  const auto data = data::from_tensor_slices(reshape(predictions, {12, 2}), reshape(ys.rows(0, 12), {12, 1})).batch(5);
  const auto trained = [&](Optimizer& optimizer) {
    Sequential net = model();
    const History history =
        fit(net, optimizer, MeanSquaredError(), data, {.epochs = 3, .metrics = {Correlation()}, .verbose = false});
    EXPECT_EQ(history["correlation"].size(), 3);
    EXPECT_LE(std::abs(history["correlation"].back()), 1);
    std::vector<std::vector<float>> values;
    for (const Variable& v : net.variables()) values.push_back(v.value().to_vector<float>());
    return values;
  };
  const Schedule rate = ExponentialDecay({.initial_learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.5});
  SGD library({.learning_rate = rate, .momentum = 0.9});
  HeavyBall own(rate, 0.9);
  EXPECT_EQ(trained(own), trained(library));
  EXPECT_EQ(own.iterations(), 9);
  EXPECT_GT(own.variables().size(), library.variables().size());  // the joint state
}

TEST(OwnRules, OptionsOfAllOptimizersHold) {
  struct Clipped : Optimizer {
    Clipped() : Optimizer(std::make_shared<HeavyBallRule>(0.0), {.learning_rate = 1.0, .clipvalue = 0.25}) {}
  };
  Variable v(constant({1.0f, 2.0f}));
  Clipped clipped;
  clipped.apply_gradients(Gradients(Variables{v}, std::vector{constant({5.0f, 0.125f})}, constant(1.0f)));
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{0.75f, 1.875f}));
  struct Wrong : Optimizer {
    Wrong() : Optimizer(std::make_shared<HeavyBallRule>(0.0), {.learning_rate = -1.0}) {}
  };
  expect_says(error_of<InvalidArgument>([] { Wrong(); }), "heavy_ball");
}

/// HeavyBall with what a rule may get wrong.
struct WrongRule final : UpdateRule {
  enum class Mistake { no_state, state_of_rows, no_slots, other_shape, other_dtype, empty_variable };
  const Mistake mistake;
  explicit WrongRule(Mistake m) : mistake(m) {}
  std::string_view name() const override { return "wrong"; }
  std::vector<Slot> slots() const override { return {{.name = "momentum"}}; }
  std::vector<double> joint_state() const override { return {1}; }
  Shared share(const StepNumbers& step, std::span<const Tensor> joint) const override {
    if (mistake == Mistake::no_state) return {{step.learning_rate}, {}};
    if (mistake == Mistake::state_of_rows) return {{step.learning_rate}, {stack({joint[0], joint[0]})}};
    return {{step.learning_rate}, {joint[0]}};
  }
  Updated update(const Tensor& w, const Tensor& g, std::span<const Tensor> slots,
                 std::span<const Tensor> shared) const override {
    const Tensor m = slots[0] - shared[0] * g;
    if (mistake == Mistake::no_slots) return {w + m, {}};
    if (mistake == Mistake::other_shape) return {w + m, {reduce_sum(m) + stack({m, m})}};
    if (mistake == Mistake::other_dtype) return {w + m, {cast(m, i32)}};
    return {mistake == Mistake::empty_variable ? Tensor() : w + m, {m}};
  }
};
struct Wrong : Optimizer {
  Wrong(WrongRule::Mistake mistake, bool use_ema)
      : Optimizer(std::make_shared<WrongRule>(mistake), {.learning_rate = 0.1, .use_ema = use_ema}) {}
};

TEST(OwnRules, ARuleThatGivesOtherValuesThanItDeclaresIsNamed) {
  using enum WrongRule::Mistake;
  const std::pair<WrongRule::Mistake, const char*> cases[] = {
      {no_state, "0 next values of the joint state"},
      {state_of_rows, "expected f64 scalars"},
      {no_slots, "0 slots"},
      {other_shape, "slot 0 as f32[2,3]"},
      {other_dtype, "slot 0 as i32[3]"},
      {empty_variable, "the variable as an empty tensor"},
  };
  for (const auto& [mistake, says] : cases)
    for (const bool use_ema : {false, true}) {
      const Variable v(ones({3}));
      Wrong optimizer(mistake, use_ema);
      const std::string message = error_of<InvalidArgument>(
          [&] { optimizer.apply_gradients(Gradients(Variables{v}, std::vector{ones({3})}, constant(1.0f))); });
      expect_says(message, says);
      expect_says(message, "optimizer wrong");
      EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{1, 1, 1}));
    }
}

}  // namespace
}  // namespace gradus::own_metrics_and_rules_test
