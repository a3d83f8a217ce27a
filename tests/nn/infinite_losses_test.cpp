/// Losses of infinite predictions: limits, where 0 times infinity would make NaN of them.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/gradus.h"

namespace gradus::infinite_losses_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

struct Case {
  std::string name;
  LossFunction loss;
  Tensor y, prediction;
  double value;
  std::vector<double> gradient;
};

std::vector<Case> cases() {
  const auto row = [](const std::vector<double>& values) {
    return from_values(values, {1, static_cast<std::int64_t>(values.size())});
  };
  const double log2 = std::log(2.0);
  return {
      {"one-hot", CategoricalCrossentropy(from_logits), row({1, 0, 0}), row({0, 0, -inf}), log2, {-0.5, 0.5, 0}},
      {"one-hot, impossible",
       CategoricalCrossentropy(from_logits),
       row({0, 0, 1}),
       row({0, 0, -inf}),
       inf,
       {0.5, 0.5, -1}},
      {"focal",
       CategoricalFocalCrossentropy(from_logits, {.alpha = 1, .gamma = 0}),
       row({1, 0, 0}),
       row({0, 0, -inf}),
       log2,
       {-0.5, 0.5, 0}},
      {"binary", BinaryCrossentropy(from_logits), row({1, 0}), row({inf, -inf}), 0, {0, 0}},
      {"binary, wrong", BinaryCrossentropy(from_logits), row({0, 1}), row({inf, -inf}), inf, {0.5, -0.5}},
      {"binary focal", BinaryFocalCrossentropy(from_logits), row({1, 0}), row({inf, -inf}), 0, {0, 0}},
      {"huber", Huber(), row({0, 0}), row({inf, 0.5}), inf, {0.5, 0.25}},
      {"absolute", PerExampleLoss(mean_absolute_error), row({0, 0}), row({inf, -inf}), inf, {0.5, -0.5}},
  };
}

TEST(InfinitePredictions, GiveLimits) {
  for (const Case& each : cases())
    for (const DType t : {f64, f32, f16, bf16}) {
      const auto run = [&](const Tensor& y, const Tensor& p) {
        GradientTape tape;
        tape.watch(p);
        const Loss loss = each.loss(y, p);
        return std::pair{loss.value(), tape.gradient(loss, p)};
      };
      auto compiled = function([&](Tensor y, Tensor p) { return run(y, p); });
      const Tensor y = cast(each.y, t), p = cast(each.prediction, t);
      for (const auto& [value, gradient] : {run(y, p), compiled(y, p)}) {
        const std::vector<double> got = cast(gradient, f64).to_vector<double>();
        if (std::isinf(each.value)) EXPECT_EQ(value.item(), each.value) << each.name << ' ' << t;
        else EXPECT_NEAR(value.item(), each.value, 5e-3) << each.name << ' ' << t;
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_NEAR(got[i], each.gradient[i], 5e-3) << each.name << ' ' << t << ' ' << i;
      }
    }
}

/// Rows of labels that do not fit into the time have the loss infinity, and pull nowhere.
TEST(InfinitePredictions, ImpossibleAlignmentsHaveNoGradient) {
  const Tensor y = constant({{1, 1, 1}, {1, 0, 0}, {0, 0, 0}}), p = random::normal({3, 2, 3}, {.seed = 1});
  GradientTape tape;
  tape.watch(p);
  const Tensor each = ctc(y, p);
  const Tensor gradient = tape.gradient(reduce_sum(where(is_finite(each), each, 0)) + each[0] * 1, p);
  EXPECT_EQ(each[0].item(), inf);
  EXPECT_TRUE(std::isfinite(each[1].item()));
  EXPECT_TRUE(std::isfinite(each[2].item()));  // of no label
  EXPECT_TRUE(reduce_all(is_finite(gradient)).item());
}

}  // namespace
}  // namespace gradus::infinite_losses_test
