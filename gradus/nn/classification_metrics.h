/// Metrics beyond means over examples: counts of right and wrong predictions, what is made of them, and others. y and
/// prediction are of one shape, y counts as true from 0.5 on, and each element is a prediction, unless it says
/// otherwise. Weights are one number an element, or one for all at a place of the first dimensions, such as a row of
/// axis 0. As in Keras, what would be divided by 0 is 0.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/metrics.h"

namespace gradus {

struct ThresholdOption {
  double threshold = 0.5;  // a prediction above it is positive
  static constexpr auto ranges() { return std::array{Allowed::share("threshold")}; }
};
/// How many, or how much weight. A prediction outside of 0 and 1 is an InvalidArgument when the result is read, here
/// and in all that compare with thresholds: it is no probability.
struct TruePositives : Metric {
  TruePositives() : TruePositives(ThresholdOption()) {}
  explicit TruePositives(ThresholdOption options);
};
struct TrueNegatives : Metric {
  TrueNegatives() : TrueNegatives(ThresholdOption()) {}
  explicit TrueNegatives(ThresholdOption options);
};
struct FalsePositives : Metric {
  FalsePositives() : FalsePositives(ThresholdOption()) {}
  explicit FalsePositives(ThresholdOption options);
};
struct FalseNegatives : Metric {
  FalseNegatives() : FalseNegatives(ThresholdOption()) {}
  explicit FalseNegatives(ThresholdOption options);
};
/// Of the positive predictions, the share that is right.
struct Precision : Metric {
  Precision() : Precision(ThresholdOption()) {}
  explicit Precision(ThresholdOption options);
};
/// Of the true ones, the share that is found.
struct Recall : Metric {
  Recall() : Recall(ThresholdOption()) {}
  explicit Recall(ThresholdOption options);
};

enum class AUCCurve { roc, pr };
struct AUCOptions {
  std::int64_t num_thresholds = 200;
  AUCCurve curve = AUCCurve::roc;
  bool from_logits = false;  // else predictions are probabilities
  static constexpr auto ranges() { return std::array{Allowed::within(2, 1 << 20, "num_thresholds")}; }
};
/// The area below the curve of true positives by false ones (roc), or of precision by recall (pr), interpolated between
/// thresholds (Davis and Goadrich 2006 for pr).
struct AUC : Metric {
  AUC() : AUC(AUCOptions()) {}
  explicit AUC(AUCOptions options);
};

struct OperatingPointOptions {
  std::int64_t num_thresholds = 200;
  static constexpr auto ranges() { return std::array{Allowed::within(2, 1 << 20, "num_thresholds")}; }
};
/// The best of the one among the thresholds at which the other is at least the number given; 0 if there is none.
struct SensitivityAtSpecificity : Metric {
  explicit SensitivityAtSpecificity(double specificity, OperatingPointOptions options = {});
};
struct SpecificityAtSensitivity : Metric {
  explicit SpecificityAtSensitivity(double sensitivity, OperatingPointOptions options = {});
};
struct PrecisionAtRecall : Metric {
  explicit PrecisionAtRecall(double recall, OperatingPointOptions options = {});
};
struct RecallAtPrecision : Metric {
  explicit RecallAtPrecision(double precision, OperatingPointOptions options = {});
};

enum class ClassAverage { macro, micro, weighted };
struct FBetaOptions {
  ClassAverage average = ClassAverage::macro;
  double beta = 1;
  std::optional<double> threshold = {};  // a prediction above it is positive; else the largest one is
  static constexpr auto ranges() { return std::array{Allowed::positive("beta"), Allowed::share("threshold")}; }
};
/// (1 + beta^2) precision recall / (beta^2 precision + recall) of [batch, classes]: the mean over classes, or of all
/// counts (micro), or the mean weighted by how often a class occurs.
struct FBetaScore : Metric {
  explicit FBetaScore(std::int64_t num_classes, FBetaOptions options = {});
};
struct F1Score : Metric {
  explicit F1Score(std::int64_t num_classes, FBetaOptions options = {});
};

/// y and prediction are classes, integers (or whole numbers) of one shape: the mean over the classes that occur of
/// intersection over union. A class outside is an OutOfRange when the result is read, a fraction an InvalidArgument.
struct MeanIoU : Metric {
  explicit MeanIoU(std::int64_t num_classes);
};
/// The same of these classes alone.
struct IoU : Metric {
  IoU(std::int64_t num_classes, std::vector<std::int64_t> target_class_ids);
};
/// The mean of both classes, where predictions are probabilities: positive from the threshold on.
struct BinaryIoU : Metric {
  BinaryIoU() : BinaryIoU(ThresholdOption()) {}
  explicit BinaryIoU(ThresholdOption options);
};

/// sqrt(mean((y - prediction)^2))
struct RootMeanSquaredError : Metric {
  RootMeanSquaredError();
};
/// log(cosh(prediction - y)), the mean over the last axis.
struct LogCoshError : Metric {
  LogCoshError();
};
/// How often y equals the prediction.
struct Accuracy : Metric {
  Accuracy();
};
/// Which mean of the scores of several outputs: each alike, or by the variance of its y.
enum class OutputAverage { uniform_average, variance_weighted_average };
struct R2ScoreOptions {
  OutputAverage class_aggregation = OutputAverage::uniform_average;
  std::int64_t num_regressors = 0;  // above 0: the adjusted score, 1 - (1 - score) (n - 1) / (n - num_regressors - 1)
  std::int64_t max_outputs = 256;   // for so many totals are kept
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("num_regressors"), Allowed::within(1, 1 << 20, "max_outputs")};
  }
};
/// 1 - sum((y - prediction)^2) / sum((y - mean(y))^2): how much of the variance is explained; 0 where y is constant.
/// Outputs stand in the last axis, unless y is [n]: of several ones the mean, as in Keras. More than max_outputs are an
/// InvalidArgument, and so are num_regressors that leave no degree of freedom.
struct R2Score : Metric {
  R2Score();
  explicit R2Score(R2ScoreOptions options);
};

}  // namespace gradus
