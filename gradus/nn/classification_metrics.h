/// Metrics beyond means over examples: counts of right and wrong predictions, what is made of them, and others. y and
/// prediction are of one shape, y counts as true from 0.5 on, and each element is a prediction, unless it says
/// otherwise. Weights are one number an element, or one for all at a place of the first dimensions, such as a row of
/// axis 0. As in Keras, what would be divided by 0 is 0.
#pragma once
#include <optional>
#include <vector>
#include "gradus/nn/metrics.h"

namespace gradus {

struct ThresholdOption {
  double threshold = 0.5;  // a prediction above it is positive
};
/// How many, or how much weight.
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
};
/// The area below the curve of true positives by false ones (roc), or of precision by recall (pr), interpolated between
/// thresholds (Davis and Goadrich 2006 for pr).
struct AUC : Metric {
  AUC() : AUC(AUCOptions()) {}
  explicit AUC(AUCOptions options);
};

struct OperatingPointOptions {
  std::int64_t num_thresholds = 200;
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
/// intersection over union. A class outside is an OutOfRange when the result is read.
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
/// 1 - sum((y - prediction)^2) / sum((y - mean(y))^2): how much of the variance is explained; 0 where y is constant.
struct R2Score : Metric {
  R2Score();
};

}  // namespace gradus
