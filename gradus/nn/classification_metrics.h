/// Metrics beyond means over examples: counts of right and wrong predictions, metrics computed from them, and others.
/// Unless a metric says otherwise, y and prediction have one shape, y counts as true from 0.5 on, and each element is a
/// prediction. Weights are one number per element, or one per index of the first dimensions, such as one per row of
/// axis 0. As in Keras, a division by 0 gives 0.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/metrics.h"

namespace gradus {

/// Options of metrics with one threshold.
struct ThresholdOption {
  double threshold = 0.5;  // a prediction above it is positive
  static constexpr auto ranges() { return std::array{Allowed::share("threshold")}; }
};
/// Number of true positives, or their weight. A prediction outside of 0 and 1 is no probability: it is an
/// InvalidArgument when the result is read, here and in all metrics that compare with thresholds.
struct TruePositives : Metric {
  TruePositives() : TruePositives(ThresholdOption()) {}
  explicit TruePositives(ThresholdOption options);
};
/// Number of true negatives, or their weight.
struct TrueNegatives : Metric {
  TrueNegatives() : TrueNegatives(ThresholdOption()) {}
  explicit TrueNegatives(ThresholdOption options);
};
/// Number of false positives, or their weight.
struct FalsePositives : Metric {
  FalsePositives() : FalsePositives(ThresholdOption()) {}
  explicit FalsePositives(ThresholdOption options);
};
/// Number of false negatives, or their weight.
struct FalseNegatives : Metric {
  FalseNegatives() : FalseNegatives(ThresholdOption()) {}
  explicit FalseNegatives(ThresholdOption options);
};
/// Share of the positive predictions that are right.
struct Precision : Metric {
  Precision() : Precision(ThresholdOption()) {}
  explicit Precision(ThresholdOption options);
};
/// Share of the true elements that are found.
struct Recall : Metric {
  Recall() : Recall(ThresholdOption()) {}
  explicit Recall(ThresholdOption options);
};

/// The curve of AUC: receiver operating characteristic, or precision by recall.
enum class AUCCurve { roc, pr };
/// Options of AUC.
struct AUCOptions {
  std::int64_t num_thresholds = 200;  // equidistant thresholds
  AUCCurve curve = AUCCurve::roc;     // the curve
  bool from_logits = false;           // predictions are logits; else probabilities
  static constexpr auto ranges() { return std::array{Allowed::within(2, 1 << 20, "num_thresholds")}; }
};
/// Area under the curve of true positives by false positives (roc), or of precision by recall (pr). It is interpolated
/// between thresholds (Davis and Goadrich 2006 for pr).
struct AUC : Metric {
  AUC() : AUC(AUCOptions()) {}
  explicit AUC(AUCOptions options);
};

/// Options of the four metrics below.
struct OperatingPointOptions {
  std::int64_t num_thresholds = 200;  // equidistant thresholds
  static constexpr auto ranges() { return std::array{Allowed::within(2, 1 << 20, "num_thresholds")}; }
};
/// The best sensitivity among the thresholds at which the specificity is at least the given one; 0 if there is none.
struct SensitivityAtSpecificity : Metric {
  explicit SensitivityAtSpecificity(double specificity, OperatingPointOptions options = {});
};
/// The best specificity among the thresholds at which the sensitivity is at least the given one; 0 if there is none.
struct SpecificityAtSensitivity : Metric {
  explicit SpecificityAtSensitivity(double sensitivity, OperatingPointOptions options = {});
};
/// The best precision among the thresholds at which the recall is at least the given one; 0 if there is none.
struct PrecisionAtRecall : Metric {
  explicit PrecisionAtRecall(double recall, OperatingPointOptions options = {});
};
/// The best recall among the thresholds at which the precision is at least the given one; 0 if there is none.
struct RecallAtPrecision : Metric {
  explicit RecallAtPrecision(double precision, OperatingPointOptions options = {});
};

/// The average over classes: none (one score for each class), the mean of the scores, the score of all counts together,
/// or the mean weighted by the frequency of each class.
enum class ClassAverage { none, macro, micro, weighted };
/// Options of FBetaScore and F1Score.
struct FBetaOptions {
  ClassAverage average = ClassAverage::none;  // average over classes; none: results() gives one score a class
  double beta = 1;                            // weight of recall against precision
  std::optional<double> threshold = {};       // a prediction above it is positive; by default the largest one is
  static constexpr auto ranges() { return std::array{Allowed::positive("beta"), Allowed::share("threshold")}; }
};
/// F-beta score (1 + beta^2) precision recall / (beta^2 precision + recall) of [batch, classes]: for each class, the
/// mean over classes (macro), from the counts of all classes (micro), or the mean weighted by the frequency of each
/// class. Logs name the score of class 2 fbeta_score_2.
struct FBetaScore : Metric {
  explicit FBetaScore(std::int64_t num_classes, FBetaOptions options = {});
};
/// FBetaScore with beta 1.
struct F1Score : Metric {
  explicit F1Score(std::int64_t num_classes, FBetaOptions options = {});
};

/// Mean intersection over union, over the classes that occur. y and prediction are classes, integers (or whole numbers)
/// of one shape. A class outside of [0, num_classes) is an OutOfRange when the result is read, a fraction an
/// InvalidArgument.
struct MeanIoU : Metric {
  explicit MeanIoU(std::int64_t num_classes);
};
/// MeanIoU of these classes alone.
struct IoU : Metric {
  IoU(std::int64_t num_classes, std::vector<std::int64_t> target_class_ids);
};
/// MeanIoU of two classes. Predictions are probabilities, positive from the threshold on.
struct BinaryIoU : Metric {
  BinaryIoU() : BinaryIoU(ThresholdOption()) {}
  explicit BinaryIoU(ThresholdOption options);
};

/// sqrt(mean((y - prediction)^2)).
struct RootMeanSquaredError : Metric {
  RootMeanSquaredError();
};
/// log(cosh(prediction - y)), with the mean over the last axis.
struct LogCoshError : Metric {
  LogCoshError();
};
/// Share of predictions that equal y.
struct Accuracy : Metric {
  Accuracy();
};
/// Mean of the scores of several outputs: uniform, or weighted by the variance of their y.
enum class OutputAverage { uniform_average, variance_weighted_average };
/// Options of R2Score.
struct R2ScoreOptions {
  OutputAverage class_aggregation = OutputAverage::uniform_average;  // mean over several outputs
  std::int64_t num_regressors = 0;  // > 0: the adjusted score, 1 - (1 - score) (n - 1) / (n - num_regressors - 1)
  std::int64_t max_outputs = 256;   // largest number of outputs; totals are kept for all of these
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("num_regressors"), Allowed::within(1, 1 << 20, "max_outputs")};
  }
};
/// Coefficient of determination 1 - sum((y - prediction)^2) / sum((y - mean(y))^2), the explained share of the
/// variance; 0 where y is constant. Outputs stand in the last axis, unless y is [n]; several ones are averaged, as in
/// Keras. InvalidArgument for more than max_outputs, and for num_regressors that leave no degree of freedom.
struct R2Score : Metric {
  R2Score();
  explicit R2Score(R2ScoreOptions options);
};

}  // namespace gradus
