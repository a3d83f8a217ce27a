/// Metrics made of counts, against Keras's values.
#include "gradus/nn/classification_metrics.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/function/function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::classification_metrics_test {
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
    EXPECT_NEAR(one.result(), f1[static_cast<int>(average) - 1], 1e-6);
    FBetaScore two(3, {.average = average, .beta = 2, .threshold = 0.3f});
    two.update(targets, scores);
    EXPECT_NEAR(two.result(), f2[static_cast<int>(average) - 1], 1e-6);
  }
  F1Score each(3);  // one score for each class, as in Keras
  each.update(targets, scores);
  const std::vector<double> of_classes = each.results();
  ASSERT_EQ(of_classes.size(), 3u);
  EXPECT_NEAR((of_classes[0] + of_classes[1] + of_classes[2]) / 3, f1[0], 1e-6);
  EXPECT_NE(of_classes[0], of_classes[2]);
  expect_says(error_of<InvalidArgument>([&] { each.result(); }), "f1_score: it has 3 results, one a class");
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

/// A number outside of 0 and 1 is no probability, whichever threshold it is compared with.
TEST(ClassificationMetrics, PredictionsOutsideOfProbabilitiesAreRefused) {
  const std::vector<Metric> metrics{TruePositives(),
                                    TrueNegatives(),
                                    FalsePositives(),
                                    FalseNegatives(),
                                    Precision(),
                                    Recall(),
                                    AUC(),
                                    AUC({.curve = AUCCurve::pr}),
                                    SensitivityAtSpecificity(0.5),
                                    SpecificityAtSensitivity(0.5),
                                    PrecisionAtRecall(0.5),
                                    RecallAtPrecision(0.5),
                                    BinaryIoU()};
  for (const Metric& each : metrics)
    for (const double odd : {1.5, -0.25, std::nan(""), -7.0}) {
      Metric metric = each, traced = each;
      metric.update(constant({0, 1, 1}), constant({0.25, odd, 1.0}));
      expect_says(error_of<InvalidArgument>([&] { metric.result(); }), ": 1 predictions are outside");
      auto step = function([&](Tensor a, Tensor b) {
        traced.update(a, b);
        return a;
      });
      step(constant({0, 1, 1}), constant({0.25, odd, 1.0})).observed();
      EXPECT_THROW(traced.result(), InvalidArgument) << each.name();
      metric.reset();
      metric.update(constant({0, 1, 1}), constant({0.0, 0.5, 1.0}));
      EXPECT_NO_THROW(metric.result()) << each.name();
    }
  const FBetaOptions mean{.average = ClassAverage::macro}, at_half{.average = ClassAverage::macro, .threshold = 0.5};
  FBetaScore of_threshold(2, at_half), of_largest(2, mean);
  for (Metric* metric : {static_cast<Metric*>(&of_threshold), static_cast<Metric*>(&of_largest)})
    metric->update(constant({{1, 0}, {0, 1}}), constant({{3.0, -1.0}, {0.5, 2.0}}));
  EXPECT_THROW(of_threshold.result(), InvalidArgument);
  EXPECT_EQ(of_largest.result(), 1);
}

TEST(ClassificationMetrics, LogitsAreDeclared) {
  AUC of_logits({.from_logits = true}), of_probabilities;
  const Tensor logits = constant({-3.0, 2.0, 0.5, 7.0}), labels = constant({0, 1, 0, 1});
  of_logits.update(labels, logits);
  of_probabilities.update(labels, sigmoid(logits));
  EXPECT_EQ(of_logits.result(), of_probabilities.result());
}

TEST(ClassificationMetrics, ClassesAreWholeNumbers) {
  MeanIoU metric(2);
  metric.update(constant({0, 1}), constant({0.3, 0.9}));
  expect_says(error_of<InvalidArgument>([&] { metric.result(); }), "whole numbers");
  MeanIoU whole(2);
  whole.update(constant({0, 1}), constant({0.0, 1.0}));
  EXPECT_EQ(whole.result(), 1);
}

/// Keras 3, R2Score: the mean of the scores of the outputs, or by their variance, and adjusted.
TEST(ClassificationMetrics, R2ScoreOfSeveralOutputs) {
  const std::vector<double> y{1, 2, 3, 5, 4, 8, 7, 1}, p{1.5, 1, 2, 5.5, 4, 6, 8, 2};  // [4, 2]
  double uniform = 0, weighted = 0, spreads = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    double mean = 0, spread = 0, error = 0;
    for (std::size_t i = 0; i < 4; ++i) mean += y[2 * i + k] / 4;
    for (std::size_t i = 0; i < 4; ++i) {
      spread += (y[2 * i + k] - mean) * (y[2 * i + k] - mean);
      error += (y[2 * i + k] - p[2 * i + k]) * (y[2 * i + k] - p[2 * i + k]);
    }
    uniform += (1 - error / spread) / 2;
    weighted += (1 - error / spread) * spread;
    spreads += spread;
  }
  const auto result_of = [&](R2ScoreOptions options) {
    R2Score score(options);
    const Tensor a = from_values(y, {4, 2}), b = from_values(p, {4, 2});
    score.update(a.rows(0, 1), b.rows(0, 1));
    score.update(a.rows(1, 4), b.rows(1, 4));
    return score.result();
  };
  EXPECT_NEAR(result_of({}), uniform, 1e-12);
  EXPECT_NEAR(result_of({.class_aggregation = OutputAverage::variance_weighted_average}), weighted / spreads, 1e-12);
  EXPECT_NEAR(result_of({.num_regressors = 1}), 1 - (1 - uniform) * 3 / 2, 1e-12);
  EXPECT_THROW(result_of({.num_regressors = 3}), InvalidArgument);
  EXPECT_THROW(result_of({.max_outputs = 1}), InvalidArgument);
  // One output as [n, 1] and as [n].
  R2Score column, flat;
  const Tensor a = from_values(y, {8}), b = from_values(p, {8});
  flat.update(a, b);
  column.update(reshape(a, {8, 1}), reshape(b, {8, 1}));
  EXPECT_EQ(flat.result(), column.result());
}

}  // namespace
}  // namespace gradus::classification_metrics_test
