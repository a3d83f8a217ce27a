/// Metrics: values, weights, where they gather, and that copies are their own.
#include "gradus/nn/metrics.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/function/pending.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

namespace gradus::metrics_test {
namespace {

const Tensor scores = constant({{0.1, 0.7, 0.2}, {0.5, 0.2, 0.3}, {0.1, 0.1, 0.8}, {0.9, 0.0, 0.1}});

TEST(Metrics, SparseCategoricalAccuracy) {
  for (DType t : {i32, i64, u8}) {
    SparseCategoricalAccuracy accuracy;
    EXPECT_TRUE(std::isnan(accuracy.result()));
    accuracy.update(cast(constant({1, 0, 2, 1}), t), scores);
    EXPECT_EQ(accuracy.result(), 0.75);
    accuracy.update(cast(constant({0, 1, 0, 1}), t), scores);
    EXPECT_EQ(accuracy.result(), 0.375);
    accuracy.reset();
    EXPECT_TRUE(std::isnan(accuracy.result()));
    EXPECT_EQ(accuracy.name(), "sparse_categorical_accuracy");
  }
}

TEST(Metrics, TopKAccuracies) {
  SparseTopKCategoricalAccuracy sparse({.k = 2});
  sparse.update(constant({2, 1, 0, 0}), scores);
  EXPECT_EQ(sparse.result(), 0.75);  // of the third row two are equal
  TopKCategoricalAccuracy one_hot({.k = 1});
  one_hot.update(constant({{0, 1, 0}, {1, 0, 0}, {1, 0, 0}, {1, 0, 0}}), scores);
  EXPECT_EQ(one_hot.result(), 0.75);
  EXPECT_THROW(TopKCategoricalAccuracy({.k = 0}), InvalidArgument);
}

TEST(Metrics, OtherAccuracies) {
  CategoricalAccuracy categorical;
  categorical.update(constant({{0, 1, 0}, {1, 0, 0}, {1, 0, 0}, {1, 0, 0}}), scores);
  EXPECT_EQ(categorical.result(), 0.75);
  BinaryAccuracy of_probabilities(from_probabilities), of_logits(from_logits);
  const Tensor y = constant({1, 0, 1, 0}), p = constant({0.6, 0.6, 0.4, 0.4}), x = constant({0.1, 0.1, 0.1, -0.1});
  of_probabilities.update(y, p);
  of_logits.update(y, x);
  EXPECT_EQ(of_probabilities.result(), 0.5);
  EXPECT_EQ(of_logits.result(), 0.75);
  MeanAbsoluteError error;
  error.update(constant({{1.0, 2.0}, {3.0, 4.0}}), constant({{1.0, 4.0}, {3.0, 0.0}}));
  EXPECT_EQ(error.result(), 1.5);
}

TEST(Metrics, SampleWeights) {
  SparseCategoricalAccuracy accuracy;
  accuracy.update(constant({1, 0, 2, 1}), scores, constant({1.0, 1.0, 1.0, 5.0}));
  EXPECT_EQ(accuracy.result(), 0.375);
  EXPECT_THROW(accuracy.update(constant({1, 0, 2, 1}), scores, constant({1.0})), InvalidArgument);
}

TEST(Metrics, OfOnesOwn) {
  const auto worst = [](Tensor y, Tensor p) { return reduce_max(abs(y - p), {.axis = {1}}); };
  Metric metric("worst", worst);
  metric.update(constant({{1.0, 2.0}, {3.0, 4.0}}), constant({{1.0, 4.0}, {3.0, 0.0}}));
  EXPECT_EQ(metric.result(), 3);
  EXPECT_THROW(Metric("", worst), InvalidArgument);
}

TEST(Metrics, GatherInTracedCallsAsInOthers) {
  SparseCategoricalAccuracy accuracy;
  const auto step = function([&](Tensor y) { accuracy.update(y, scores); });
  step(constant({1, 0, 2, 1}));
  step(constant({1, 0, 2, 0}));
  accuracy.update(constant({0, 1, 0, 1}), scores);
  EXPECT_EQ(accuracy.result(), 7.0 / 12);
  accuracy.reset();
  step(constant({1, 0, 2, 0}));
  EXPECT_EQ(accuracy.result(), 1);
}

TEST(Metrics, UpdatingWaitsForNothing) {
  SparseCategoricalAccuracy accuracy;
  const std::int64_t before = Pending::mine().dispatches();
  for (int i = 0; i < 5; ++i) accuracy.update(constant({1, 0, 2, 1}), scores);
  EXPECT_EQ(Pending::mine().dispatches(), before);
  EXPECT_EQ(accuracy.result(), 0.75);
}

TEST(Metrics, CopiesGatherOnTheirOwn) {
  SparseCategoricalAccuracy accuracy;
  const auto step = function([&](Tensor y) { accuracy.update(y, scores); });
  step(constant({1, 0, 2, 1}));
  Metric copy = accuracy;
  step(constant({0, 1, 0, 1}));
  EXPECT_EQ(copy.result(), 0.75);
  EXPECT_EQ(accuracy.result(), 0.375);
  copy = accuracy;
  EXPECT_EQ(copy.result(), 0.375);
}

TEST(Metrics, RefuseWhatDoesNotFit) {
  SparseCategoricalAccuracy accuracy;
  EXPECT_THROW(accuracy.update(constant({1, 0}), scores), InvalidArgument);
  EXPECT_THROW(accuracy.update(scores, scores), InvalidArgument);
  EXPECT_THROW(MeanAbsoluteError().update(zeros({4}), zeros({4, 1})), InvalidArgument);
}

}  // namespace
}  // namespace gradus::metrics_test
