/// What rows cannot say of the losses in class_losses.h and regression_losses.h: weights, options, corner cases.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/nn/class_losses.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::more_losses_test {
namespace {

TEST(MoreLosses, ClassesAreTheMeanOfTheFunctions) {
  const Tensor y = random::uniform({4, 3}, {.dtype = f64, .seed = 1}),
               p = random::uniform({4, 3}, {.dtype = f64, .seed = 2});
  const Tensor weight = constant({1.0, 0.0, 2.0, 3.0}, f64);
  const auto check = [&](const LossFunction& loss, const Tensor& each) {
    EXPECT_EQ(loss(y, p).weight().item(), 4);
    EXPECT_NEAR(loss(y, p).item(), reduce_mean(each).item(), 1e-14);
    EXPECT_NEAR(loss(y, p, weight).item(), reduce_sum(each * weight).item() / 6, 1e-13);
  };
  check(MeanAbsolutePercentageError(), mean_absolute_percentage_error(y, p));
  check(MeanSquaredLogarithmicError(), mean_squared_logarithmic_error(y, p));
  check(LogCosh(), log_cosh(y, p));
  check(Huber({.delta = 0.25}), huber(y, p, {.delta = 0.25}));
  check(Hinge(), hinge(y, p));
  check(SquaredHinge(), squared_hinge(y, p));
  check(CategoricalHinge(), categorical_hinge(y, p));
  check(KLDivergence(), kl_divergence(y, p));
  check(Poisson(), poisson(y, p));
  check(CosineSimilarity(), cosine_similarity(y, p));
  check(BinaryFocalCrossentropy(from_probabilities), binary_focal_crossentropy(y, p, from_probabilities));
  check(CategoricalFocalCrossentropy(from_logits), categorical_focal_crossentropy(y, p, from_logits));
  check(Dice({.axis = {-1}}), dice(y, p, {.axis = {-1}}));
  check(Tversky({.alpha = 0.25, .axis = {-1}}), tversky(y, p, {.alpha = 0.25, .axis = {-1}}));
  check(PerExampleLoss(mean_absolute_error), mean_absolute_error(y, p));
  EXPECT_EQ(Dice()(y, p).weight().item(), 1);
}

/// Keras 3.15 on TensorFlow, in float64.
TEST(MoreLosses, ValuesOfKeras) {
  const Tensor y = constant({{0.2, 0.9, 0.4}, {0.0, 1.0, 0.0}, {0.0, 0.0, 0.0}}, f64);
  const Tensor p = constant({{0.3, 0.5, 0.25}, {0.1, 0.7, 0.2}, {0.6, 0.3, 0.1}}, f64);
  const auto check = [&](const char* name, const Tensor& got, const std::vector<double>& want,
                         double tolerance = 1e-13) {
    const std::vector<double> values = got.to_vector<double>();
    ASSERT_EQ(values.size(), want.size()) << name;
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(values[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << name << ' ' << i;
  };
  check("mape", mean_absolute_percentage_error(y, p), {43.98148148148148, 100000010.00000001, 333333333.3333334});
  check("msle", mean_squared_logarithmic_error(y, p),
        {0.025043293453274957, 0.022912509121627168, 0.09960742787082827});
  check("log_cosh", log_cosh(y, p), {0.031384410801366, 0.023066841624543755, 0.07315591327056988},
        2e-9);  // its log(2) is that of float32
  check("huber", huber(y, p), {0.032083333333333346, 0.02333333333333334, 0.07666666666666666});
  check("hinge", hinge(y, p), {0.7966666666666667, 0.7666666666666666, 1.0});
  check("squared_hinge", squared_hinge(y, p), {0.6653666666666667, 0.6966666666666667, 1.0});
  check("categorical_hinge", categorical_hinge(y, p), {0.63, 0.5, 1.6});
  check("kl_divergence", kl_divergence(y, p), {0.6359164284885686, 0.35667211152190276, -4.433690343178898e-06});
  check("poisson", poisson(y, p), {0.8230481203834962, 0.4522249336938666, 0.3333333333333333});
  check("cosine_similarity", cosine_similarity(y, p), {-0.9567229803232775, -0.9525793444156805, 0});
  check("dice", dice(y, p), {0.5279279364337309});
  check("tversky", tversky(y, p), {0.5279279449395335});
  check("binary focal", binary_focal_crossentropy(y, p, from_probabilities),
        {0.13216794476877478, 0.014026697387877526, 0.12100633786192});
  check("categorical focal", categorical_focal_crossentropy(y, p, from_probabilities),
        {0.16106800783046904, 0.008025186238621482, 0});
  const Tensor numbers = mod(reshape(range(40), {2, 5, 4}), 7);
  const Tensor aligned = ctc(constant({{1, 2, 0}, {2, 2, 0}}), cast(numbers, f64) * 0.5);  // of Keras in float32
  EXPECT_NEAR(aligned[0].item(), 4.746431827545166, 2e-6);
  EXPECT_NEAR(aligned[1].item(), 4.55009651184082, 2e-6);
}

/// Keras 3.15 on TensorFlow, in float64.
TEST(MoreLosses, CircleAndGeneralized) {
  const auto check = [](const Tensor& got, const std::vector<double>& want) {
    EXPECT_LT(max_abs_difference(got, from_values(want, {static_cast<std::int64_t>(want.size())})), 1e-13);
  };
  const Tensor p = constant({{0.6, 0.8}, {0.8, 0.6}, {1.0, 0.0}, {0.0, 1.0}, {-0.6, 0.8}}, f64);
  const Tensor y = constant({1, 1, 2, 2, 3});
  check(circle(y, p, {.gamma = 2}), {1.527816030118594, 1.5081360248421132, 3.345798424710405, 3.6117520546446444, 0});
  const Tensor labels = constant({1, 3}), references = constant({{0.0, 1.0}, {1.0, 0.0}}, f64);
  check(circle(
            y, p,
            {.ref_labels = labels, .ref_embeddings = references, .remove_diagonal = false, .gamma = 3, .margin = 0.25}),
        {1.1884166621265706, 2.1489805408861917, 0, 0, 9.225098539874905});
  EXPECT_EQ(Circle({.gamma = 2})(y, p).weight().item(), 5);
  EXPECT_TRUE(all_finite(gradient([&](const Tensor& x) { return reduce_sum(circle(y, x)); }, p)).item());
  const Tensor shares = constant({{0.3, 0.5, 0.2}, {0.1, 0.7, 0.2}}, f64);
  check(categorical_generalized_cross_entropy(constant({1, 2}), shares, {.q = 0.7}),
        {0.5491825618964884, 0.9655266866592107});
  EXPECT_EQ(CategoricalGeneralizedCrossEntropy()(constant({1, 2}), shares).weight().item(), 2);
  expect_says(error_of([&] { circle(y, shares); }), "circle");
  expect_says(error_of([&] { categorical_generalized_cross_entropy(y, p, {.q = 0}); }), "q must be positive");
}

TEST(MoreLosses, HingeTakesZerosAndOnes) {
  const Tensor p = constant({{0.5, -2.0, 3.0}}), signs = constant({{1, -1, -1}}), bits = constant({{1, 0, 0}});
  EXPECT_EQ(hinge(signs, p).item(), (0.5 + 0 + 4) / 3.0);
  EXPECT_EQ(hinge(bits, p).item(), hinge(signs, p).item());
  EXPECT_EQ(squared_hinge(not_equal(bits, 0), p).item(), squared_hinge(signs, p).item());
}

TEST(MoreLosses, ZerosHaveNoDirection) {
  const Tensor zero = zeros({1, 3}), y = ones({1, 3});
  EXPECT_EQ(cosine_similarity(y, zero).item(), 0);
  const auto f = [&](const Tensor& p) { return reduce_sum(cosine_similarity(zeros_like(p), p)); };
  EXPECT_EQ(max_abs_difference(gradient(f, zero), zero), 0);
}

TEST(Ctc, BlanksFillUpRows) {
  const Tensor logits = random::normal({2, 6, 4}, {.dtype = f64, .seed = 1});
  const Tensor filled = ctc(constant({{3, 1, 0, 0}, {2, 0, 0, 0}}), logits);
  EXPECT_NEAR(filled[0].item(), ctc(constant({{3, 1}}), logits.rows(0, 1)).item(), 1e-13);
  EXPECT_NEAR(filled[1].item(), ctc(constant({{2}}), logits.rows(1, 2)).item(), 1e-13);
  EXPECT_NEAR(
      ctc(constant({{3, 3, 3}}), logits.rows(0, 1), {.mask_index = 3}).item(),
      -reduce_sum(logits[0] - reduce_logsumexp(logits[0], {.axis = {-1}, .keepdims = true}), {.axis = {0}})[3].item(),
      1e-13);
}

TEST(Ctc, OneProgramServesAllSizes) {
  const auto loss = [](Tensor y, Tensor logits) { return ctc(y, logits); };
  const auto slope = [](Tensor y, Tensor logits) {
    return gradient([&](const Tensor& x) { return reduce_sum(ctc(y, x)); }, logits);
  };
  const FunctionOptions sizes{.input_signature = {{i32, {any_size, any_size}}, {f64, {any_size, any_size, 5}}}};
  const auto traced_loss = function(loss, sizes);
  const auto traced_slope = function(slope, sizes);
  struct {
    std::int64_t batch, length, time;
  } const calls[] = {{3, 2, 7}, {3, 2, 7}, {4, 3, 9}, {2, 1, 6}, {5, 4, 12}};
  for (const auto& [batch, length, time] : calls) {
    const Tensor logits = random::normal({batch, time, 5}, {.dtype = f64, .seed = 1});
    const Tensor y = random::integers({batch, length}, {.low = 1, .high = 5, .seed = 2});
    EXPECT_TRUE(bitwise_equal(traced_loss(y, logits), loss(y, logits))) << batch << " " << length << " " << time;
    EXPECT_TRUE(bitwise_equal(traced_slope(y, logits), slope(y, logits))) << batch << " " << length << " " << time;
  }
  EXPECT_EQ(traced_loss.explain().variants, 1);
  EXPECT_EQ(traced_slope.explain().variants, 1);
}

TEST(Ctc, WhatDoesNotFitIsInfinite) {
  const Tensor logits = random::normal({1, 2, 3}, {.dtype = f64, .seed = 1});
  EXPECT_EQ(ctc(constant({{1, 2, 1}}), logits).item(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ctc(constant({{1, 1}}), logits).item(), std::numeric_limits<double>::infinity());  // a blank must part them
  const auto first = [](const Tensor& x) {
    return reduce_sum(where(constant({true, false}), ctc(constant({{1, 2}, {1, 1}}), x), 0));
  };
  const Tensor both = random::normal({2, 2, 3}, {.dtype = f64, .seed = 2});
  EXPECT_TRUE(all_finite(gradient(first, both)).item());
}

TEST(MoreLosses, RefuseWhatDoesNotFit) {
  expect_says(error_of([] { BinaryFocalCrossentropy(from_logits, {.gamma = -1}); }), "gamma");
  expect_says(error_of([] { CategoricalFocalCrossentropy(from_logits, {.label_smoothing = 2}); }), "label_smoothing");
  expect_says(error_of([] { huber(ones({2}), ones({2}), {.delta = 0}); }), "delta");
  expect_says(error_of([] { dice(ones({2}), ones({3})); }), "dice");
}

}  // namespace
}  // namespace gradus::more_losses_test
