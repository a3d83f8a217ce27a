/// Reductions and softmax where frameworks differ: ties, zeros, NaN, nothing at all.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/cumulative_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/views.h"

namespace gradus::reduce_test {
namespace {

using Floats = std::vector<float>;
constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();

Floats values(const Tensor& x) { return x.to_vector<float>(); }
Tensor gradient(const Tensor& y, const Tensor& x) { return vjp(y, std::span(&x, 1))[0]; }

TEST(Reduce, OfNothingGivesTheIdentity) {
  const Tensor none = zeros({2, 0});
  EXPECT_EQ(values(reduce_sum(none, {.axis = {1}})), (Floats{0, 0}));
  EXPECT_EQ(values(reduce_prod(none, {.axis = {1}})), (Floats{1, 1}));
  EXPECT_EQ(values(reduce_max(none, {.axis = {1}})), (Floats{-infinite, -infinite}));
  EXPECT_EQ(values(reduce_min(none, {.axis = {1}})), (Floats{infinite, infinite}));
  EXPECT_TRUE(std::isnan(reduce_mean(none).item()));
  EXPECT_EQ(reduce_max(zeros({0}, i32)).item(), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(reduce_min(zeros({0}, u8)).item(), 255);
  EXPECT_EQ(reduce_any(zeros({0}, boolean)).item(), 0);
  EXPECT_EQ(reduce_all(zeros({0}, boolean)).item(), 1);
  EXPECT_EQ(reduce_sum(zeros({0, 3}), {.axis = {1}}).shape(), Shape{0});
}

TEST(Reduce, ShapesAndAxes) {
  const Tensor x = zeros({2, 3, 4});
  EXPECT_EQ(reduce_sum(x).shape(), Shape{});
  EXPECT_EQ(reduce_sum(x, {.keepdims = true}).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(reduce_sum(x, {.axis = {-2}}).shape(), (Shape{2, 4}));
  EXPECT_EQ(reduce_sum(x, {.axis = {0, 2}, .keepdims = true}).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(argmax(x, 1).shape(), (Shape{2, 4}));
  EXPECT_EQ(reduce_sum(full({}, 3)).item(), 3);
  EXPECT_EQ(reduce_mean(full({}, 3)).item(), 3);
}

TEST(Reduce, IntegersWrapAround) {
  EXPECT_EQ(reduce_sum(constant({200, 100}, u8)).item(), 44);
  EXPECT_EQ(reduce_max(constant({-7, -3, -5})).item(), -3);
  EXPECT_EQ(reduce_min(constant({7, 3, 5}, u8)).item(), 3);
}

TEST(Reduce, NaNWinsWhereverItStands) {
  for (int at = 0; at < 40; ++at) {
    Floats numbers(40, 1);
    numbers[static_cast<std::size_t>(at)] = nan;
    const Tensor x = from_values(numbers, {40});
    EXPECT_TRUE(std::isnan(reduce_max(x).item())) << at;
    EXPECT_TRUE(std::isnan(reduce_min(x).item())) << at;
    EXPECT_TRUE(std::isnan(reduce_max(x.rows(0, 40), {.axis = {0}}).item())) << at;
  }
}

TEST(Reduce, TiesShareTheGradientEvenly) {
  const RecordingScope keep;
  const Tensor x = constant({{3.0f, 1.0f, 3.0f, 3.0f}, {0.0f, 2.0f, 1.0f, 0.0f}});
  const float third = 1.0f / 3;
  EXPECT_EQ(values(gradient(reduce_max(x, {.axis = {1}}), x)), (Floats{third, 0, third, third, 0, 1, 0, 0}));
  EXPECT_EQ(values(gradient(reduce_min(x, {.axis = {1}}), x)), (Floats{0, 1, 0, 0, 0.5, 0, 0, 0.5}));
}

TEST(Reduce, TheCotangentOfASumIsARepetitionThatReadersWalkInPlace) {
  const RecordingScope keep;
  const Tensor x = ones({2, 3, 4});
  for (const std::vector<int>& axis : std::vector<std::vector<int>>{{}, {0}, {1, 2}, {0, 1}, {0, 2}}) {
    const Tensor dx = gradient(reduce_sum(x, {.axis = axis}), x);
    EXPECT_NE(dx.node()->op.as<Broadcast>(), nullptr) << dx.node()->op;
    EXPECT_EQ(values(dx), Floats(24, 1));
  }
}

TEST(Reduce, ProductWithZerosHasExactGradients) {
  const RecordingScope keep;
  const Tensor x = constant({2.0f, 0.0f, 3.0f, 5.0f}), y = constant({2.0f, 0.0f, 3.0f, 0.0f, 7.0f});
  const Tensor dx = gradient(reduce_prod(x), x);
  EXPECT_EQ(values(dx), (Floats{0, 30, 0, 0}));
  EXPECT_EQ(values(gradient(dx, x)), (Floats{15, 31, 10, 6}));  // each pair's product of the others, summed over pairs
  const Tensor dy = gradient(reduce_prod(y), y);
  EXPECT_EQ(values(dy), (Floats{0, 0, 0, 0, 0}));
  EXPECT_EQ(values(gradient(dy, y)), (Floats{0, 42, 0, 42, 0}));
}

TEST(Norm, HasGradientZeroAtZero) {
  const RecordingScope keep;
  const Tensor x = constant({{3.0f, 4.0f}, {0.0f, 0.0f}});
  const Tensor y = norm(x, {.axis = {1}});
  EXPECT_EQ(values(y), (Floats{5, 0}));
  const Tensor dx = gradient(y, x);
  EXPECT_EQ(values(dx), (Floats{0.6f, 0.8f, 0, 0}));
  for (float slope : values(gradient(dx, x))) EXPECT_TRUE(std::isfinite(slope));
  const Tensor same = full({3}, 2);
  EXPECT_EQ(values(gradient(reduce_std(same), same)), (Floats{0, 0, 0}));
}

TEST(Argmax, TakesTheFirstAndPassesOverNaN) {
  EXPECT_EQ(argmax(constant({1.0f, 3.0f, 3.0f})).item(), 1);
  EXPECT_EQ(argmin(constant({2.0f, 1.0f, 1.0f})).item(), 1);
  EXPECT_EQ(argmax(constant({nan, 3.0f, 1.0f})).item(), 1);
  EXPECT_EQ(argmin(constant({2.0f, nan, 1.0f})).item(), 2);
  EXPECT_EQ(argmax(constant({nan, nan})).item(), 0);
  EXPECT_EQ(argmax(constant({-infinite, -infinite})).item(), 0);
  EXPECT_EQ(argmax(constant({false, true, true})).item(), 1);
  EXPECT_EQ(argmax(constant({1, 5, 2}, u8)).item(), 1);
}

TEST(LogSumExp, NeitherOverflowsNorCancels) {
  EXPECT_FLOAT_EQ(reduce_logsumexp(constant({1000.0f, 1000.0f})).item(), 1000 + std::log(2.0f));
  EXPECT_EQ(reduce_logsumexp(constant({-infinite, -infinite})).item(), -infinite);
  EXPECT_EQ(reduce_logsumexp(constant({1.0f, infinite})).item(), infinite);
  EXPECT_EQ(reduce_logsumexp(constant({1.0f, -infinite})).item(), 1);
}

TEST(Softmax, OfExtremes) {
  EXPECT_EQ(values(softmax(constant({1e30f, 0.0f}))), (Floats{1, 0}));
  EXPECT_EQ(values(softmax(constant({0.0f, -infinite}))), (Floats{1, 0}));
  EXPECT_EQ(values(log_softmax(constant({0.0f, -200.0f}))), (Floats{0, -200}));
  for (float x : values(softmax(constant({-infinite, -infinite})))) EXPECT_TRUE(std::isnan(x));
  for (float x : values(log_softmax(constant({-infinite, -infinite})))) EXPECT_TRUE(std::isnan(x));
}

TEST(Softmax, GradientsStayPreciseWhereProbabilitiesVanish) {
  const RecordingScope keep;
  const Tensor x = constant({{0.0f, -200.0f}});
  const Tensor first = constant({{1.0f, 0.0f}});
  const Tensor loss = reduce_sum(log_softmax(x) * (constant(1.0f) - first));
  EXPECT_EQ(values(gradient(loss, x)), (Floats{-1, 1}));
}

TEST(Cumsum, ExclusiveAndReverse) {
  const Tensor x = constant({1, 2, 3, 4});
  auto sums = [&](bool exclusive, bool reverse) {
    return apply(Cumsum{-1, exclusive, reverse}, x).to_vector<std::int32_t>();
  };
  EXPECT_EQ(sums(false, false), (std::vector<std::int32_t>{1, 3, 6, 10}));
  EXPECT_EQ(sums(true, false), (std::vector<std::int32_t>{0, 1, 3, 6}));
  EXPECT_EQ(sums(false, true), (std::vector<std::int32_t>{10, 9, 7, 4}));
  EXPECT_EQ(sums(true, true), (std::vector<std::int32_t>{9, 7, 4, 0}));
}

TEST(SumTo, UndoesBroadcasting) {
  const Tensor x = ones({2, 3, 4});
  EXPECT_EQ(values(sum_to(x, {4})), (Floats{6, 6, 6, 6}));
  EXPECT_EQ(values(sum_to(x, {3, 1})), (Floats{8, 8, 8}));
  EXPECT_EQ(sum_to(x, {}).item(), 24);
  EXPECT_EQ(element_count(x, f32).item(), 24);
}

}  // namespace
}  // namespace gradus::reduce_test
