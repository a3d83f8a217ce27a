/// Metrics made of counts, against Keras's values.
#include "gradus/nn/classification_metrics.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus {
namespace {

const Tensor y = constant({0, 1, 1, 0, 1, 0, 1, 1});
const Tensor p = constant({0.1, 0.4, 0.35, 0.8, 0.9, 0.5, 0.65, 0.2});
const Tensor w = constant({1.0, 2.0, 1.0, 0.5, 3.0, 1.0, 1.0, 2.0});

/// Without and with weights.
void expect_results(Metric metric, double plain, double weighted, const std::string& name) {
  SCOPED_TRACE(name);
  EXPECT_EQ(metric.name(), name);
  metric.update(y.rows(0, 3), p.rows(0, 3));
  metric.update(y.rows(3, 8), p.rows(3, 8));
  EXPECT_NEAR(metric.result(), plain, 1e-6);
  Metric copy = metric;
  metric.reset();
  auto step = function([&](Tensor a, Tensor b, Tensor c) {
    metric.update(a, b, c);
    return a;
  });
  step(cast(y, f32), p, w).observed();
  EXPECT_NEAR(metric.result(), weighted, 1e-6);
  EXPECT_NEAR(copy.result(), plain, 1e-6);
}

TEST(ClassificationMetrics, AgreeWithKeras) {
  expect_results(TruePositives(), 2, 4, "true_positives");
  expect_results(TrueNegatives(), 2, 2, "true_negatives");
  expect_results(FalsePositives(), 1, 0.5, "false_positives");
  expect_results(FalseNegatives(), 3, 5, "false_negatives");
  expect_results(Precision(), 0.666666687, 0.888888896, "precision");
  expect_results(Recall(), 0.4, 0.444444448, "recall");
  expect_results(AUC(), 0.533333302, 0.644444406, "auc");
  expect_results(AUC({.curve = AUCCurve::pr}), 0.695060611, 0.878266811, "auc");
  expect_results(SensitivityAtSpecificity(0.6), 0.4, 0.444444448, "sensitivity_at_specificity");
  expect_results(SpecificityAtSensitivity(0.6), 0.333333343, 0.4, "specificity_at_sensitivity");
  expect_results(PrecisionAtRecall(0.6), 0.714285731, 0.857142866, "precision_at_recall");
  expect_results(RecallAtPrecision(0.7), 1, 1, "recall_at_precision");
  expect_results(RootMeanSquaredError(), 0.553963006, 0.523782253, "root_mean_squared_error");
  // Keras cuts weights off to integers here: 0.2714. By hand: (4 / 10.5 + 1 / 7.5) / 2.
  expect_results(BinaryIoU(), 0.226190478, 0.257142857, "binary_io_u");
}

/// As of losses: [batch, time], as masks are, for [batch, time, 1].
TEST(ClassificationMetrics, WeightsMayBeOfPlaces) {
  const auto check = [](Metric metric) {
    metric.update(cast(y, f32), p, w);
    const double wanted = metric.result();
    metric.reset();
    metric.update(cast(reshape(y, {2, 4, 1}), f32), reshape(p, {2, 4, 1}), reshape(w, {2, 4}));
    EXPECT_NEAR(metric.result(), wanted, 1e-12) << metric.name();
  };
  check(Precision());
  check(AUC());
  check(BinaryIoU());
  check(RootMeanSquaredError());
  check(R2Score());
}

TEST(ClassificationMetrics, OfClasses) {
  const Tensor c = constant({0, 1, 2, 2, 1, 0, 1}), d = constant({0, 2, 2, 2, 1, 1, 1});
  MeanIoU mean(4);
  mean.update(c, d);
  EXPECT_NEAR(mean.result(), 0.5555555820465088, 1e-6);
  IoU chosen(3, {0, 2});
  chosen.update(c, d);
  EXPECT_NEAR(chosen.result(), 0.5833333730697632, 1e-6);
  const Tensor targets = one_hot(c.rows(0, 5), 3);
  const Tensor scores = constant({{0.6, 0.3, 0.1}, {0.2, 0.3, 0.5}, {0.1, 0.2, 0.7}, {0.8, 0.1, 0.1}, {0.3, 0.4, 0.3}});
  const double f1[] = {0.611110985, 0.599999964, 0.599999905}, f2[] = {0.629629612, 0.600000024, 0.588888884};
  for (const ClassAverage average : {ClassAverage::macro, ClassAverage::micro, ClassAverage::weighted}) {
    F1Score one(3, {.average = average});
    one.update(targets, scores);
    EXPECT_NEAR(one.result(), f1[static_cast<int>(average)], 1e-6);
    FBetaScore two(3, {.average = average, .beta = 2, .threshold = 0.3f});
    two.update(targets, scores);
    EXPECT_NEAR(two.result(), f2[static_cast<int>(average)], 1e-6);
  }
}

TEST(ClassificationMetrics, Others) {
  R2Score score;
  EXPECT_TRUE(std::isnan(score.result()));
  score.update(y, p);
  EXPECT_NEAR(score.result(), -0.3093334436416626, 1e-6);
  Accuracy accuracy;
  accuracy.update(constant({1, 2, 3}), constant({1.0, 2.0, 4.0}));
  EXPECT_NEAR(accuracy.result(), 2.0 / 3, 1e-15);
  LogCoshError error;
  error.update(constant({{0.0}, {1.0}}), constant({{1.0}, {1.0}}));
  EXPECT_NEAR(error.result(), std::log(std::cosh(1.0)) / 2, 1e-7);
  EXPECT_EQ(Precision().result(), 0);
}

TEST(ClassificationMetrics, Mistakes) {
  EXPECT_THROW(MeanIoU(0), InvalidArgument);
  EXPECT_THROW(MeanIoU(std::int64_t{1} << 40), InvalidArgument);
  EXPECT_THROW(IoU(3, {3}), InvalidArgument);
  EXPECT_THROW(AUC({.num_thresholds = 1}), InvalidArgument);
  EXPECT_THROW(PrecisionAtRecall(1.5), InvalidArgument);
  EXPECT_THROW(F1Score(3, {.beta = 2}), InvalidArgument);
  Precision precision;
  expect_says(error_of([&] { precision.update(y, p.rows(0, 3)); }), "precision: y is");
  expect_says(error_of([&] { precision.update(y, p, w.rows(0, 3)); }), "sample_weight");
  MeanIoU classes(2);
  EXPECT_THROW(
      {
        classes.update(constant({0, 2}), constant({0, 1}));
        classes.result();
      },
      OutOfRange);
}

}  // namespace
}  // namespace gradus
