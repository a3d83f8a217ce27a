/// Counts at one threshold or many, and metrics computed from them.
#include "gradus/nn/classification_metrics.h"
#include <algorithm>
#include <cmath>
#include "gradus/base/rooms.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/crossentropy.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"

namespace gradus {
namespace {

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

void check_pair(std::string_view metric, const Tensor& y, const Tensor& prediction) {
  require(y.shape() == prediction.shape(), metric, ": y is ", y.spec(), ", the prediction ", prediction.spec(),
          "; they must have one shape");
}

/// f64 of the shape of x: `given`, or ones.
Tensor weights_of(const std::string& metric, const Tensor& given, const Tensor& x) {
  const Tensor each = ones(x.shape(), f64);
  return given.defined() ? fitted_weight(metric, given, each) : each;
}

Tensor flat(const Tensor& x) { return reshape(x, {x.shape().size()}); }

/// 1 where y is true, f64.
Tensor truth_of(const Tensor& y) { return y.dtype() == boolean ? cast(y, f64) : cast(cast(y, f64) >= 0.5, f64); }

/// How many elements that count do not fit, f64.
Tensor misfits_of(const Tensor& fits, const Tensor& weight) {
  const Tensor misfits = logical_and(logical_not(fits), not_equal(reshape(weight, fits.shape()), 0));
  return reduce_sum(flat(cast(misfits, f64)));
}

/// How many predictions that count are no probabilities.
Tensor outside_of_probabilities(const Tensor& prediction, const Tensor& weight) {
  const Tensor p = cast(prediction, f64);
  return misfits_of(logical_and(p >= 0, p <= 1), weight);
}

/// Found only when the totals are read: InvalidArgument where predictions do not fit.
void check_misfits(const std::string& metric, double misfits, std::string_view what) {
  require(misfits == 0, metric, ": ", misfits, " predictions are ", what);
}
constexpr std::string_view no_probabilities =
    "outside of 0 and 1, so they are no probabilities; of logits take the sigmoid first, or say from_logits where the "
    "metric has it";

/// At each threshold: weights of true positives, false positives, true negatives and false negatives, [4 thresholds];
/// then the number of predictions that are no probabilities.
Tensor counts_at(const std::string& metric, const std::vector<double>& thresholds, const Tensor& y,
                 const Tensor& prediction, const Tensor& sample_weight) {
  check_pair(metric, y, prediction);
  const auto n = static_cast<std::int64_t>(thresholds.size());
  const Tensor weight = flat(weights_of(metric, sample_weight, prediction)), is_true = flat(truth_of(y));
  const Tensor above = cast(expand_dims(flat(cast(prediction, f64)), 1) > from_values(thresholds, {1, n}), f64);
  const auto total = [](const Tensor& each) { return reduce_sum(each, {.axis = {0}}); };
  const Tensor of_true = expand_dims(weight * is_true, 1), of_false = expand_dims(weight * (1 - is_true), 1);
  const Tensor true_positives = total(above * of_true), false_positives = total(above * of_false);
  return concat({true_positives, false_positives, total(of_false) - false_positives, total(of_true) - true_positives,
                 reshape(outside_of_probabilities(prediction, weight), {1})});
}

/// The four counts at each threshold, from totals.
struct Counts {
  std::span<const double> totals;
  std::size_t n() const { return totals.size() / 4; }
  double tp(std::size_t i) const { return totals[i]; }
  double fp(std::size_t i) const { return totals[n() + i]; }
  double tn(std::size_t i) const { return totals[2 * n() + i]; }
  double fn(std::size_t i) const { return totals[3 * n() + i]; }
  double recall(std::size_t i) const { return ratio(tp(i), tp(i) + fn(i)); }
  double precision(std::size_t i) const { return ratio(tp(i), tp(i) + fp(i)); }
  double specificity(std::size_t i) const { return ratio(tn(i), tn(i) + fp(i)); }
  double false_rate(std::size_t i) const { return ratio(fp(i), fp(i) + tn(i)); }
};

/// Evenly from 0 to 1; the first and the last moved out by `margin`.
std::vector<double> even_thresholds(const std::string& metric, std::int64_t n, double margin) {
  check_options(metric, OperatingPointOptions{n});
  std::vector<double> thresholds;
  for (std::int64_t i = 0; i < n; ++i) thresholds.push_back(static_cast<double>(i) / static_cast<double>(n - 1));
  thresholds.front() -= margin;
  thresholds.back() += margin;
  return thresholds;
}

double area_of_roc(const Counts& c) {
  double area = 0;
  for (std::size_t i = 0; i + 1 < c.n(); ++i)
    area += (c.false_rate(i) - c.false_rate(i + 1)) * (c.recall(i) + c.recall(i + 1)) / 2;
  return area;
}

double area_of_pr(const Counts& c) {
  double area = 0;
  for (std::size_t i = 0; i + 1 < c.n(); ++i) {
    const double found = c.tp(i) - c.tp(i + 1);
    const double positives = c.tp(i) + c.fp(i), next = c.tp(i + 1) + c.fp(i + 1);
    const double slope = ratio(found, std::max(positives - next, 0.0)), intercept = c.tp(i + 1) - slope * next;
    const double growth = positives > 0 && next > 0 ? std::log(positives / next) : 0;
    area += ratio(slope * (found + intercept * growth), c.tp(i + 1) + c.fn(i + 1));
  }
  return area;
}

using Rate = double (Counts::*)(std::size_t) const;

/// The largest `wanted` among thresholds at which `bound` is at least `least`.
double best_at(std::span<const double> totals, Rate bound, double least, Rate wanted) {
  const Counts c{totals};
  double best = 0;
  for (std::size_t i = 0; i < c.n(); ++i)
    if ((c.*bound)(i) >= least) best = std::max(best, (c.*wanted)(i));
  return best;
}

/// How many elements of x that count are no whole numbers, f64.
Tensor fractions_in(const Tensor& x, const Tensor& weight) {
  if (!is_floating(x.dtype())) return zeros({}, f64);
  const Tensor each = cast(x, f64);
  return misfits_of(equal(each, floor(each)), weight);
}

/// Confusion of classes, flat: [classes^2]; then the number of misfits.
Tensor confusion(const std::string& metric, std::int64_t classes, const Tensor& y, const Tensor& prediction,
                 const Tensor& sample_weight, const Tensor& misfits) {
  check_pair(metric, y, prediction);
  const Tensor weight = flat(weights_of(metric, sample_weight, prediction)), counts = not_equal(weight, 0);
  const auto classes_of = [&](const Tensor& x) {  // what does not count need be none
    const Tensor all = flat(cast(x, i64));
    return where(counts, all, zeros_like(all));
  };
  return concat(
      {flat(confusion_matrix(classes_of(y), classes_of(prediction), classes, weight)), reshape(misfits, {1})});
}

/// The mean over `chosen` classes that occur.
double mean_overlap(std::span<const double> confusion, std::size_t classes, const std::vector<std::int64_t>& chosen) {
  double sum = 0, count = 0;
  for (const std::int64_t id : chosen) {
    const auto k = static_cast<std::size_t>(id);
    double row = 0, column = 0;
    for (std::size_t i = 0; i < classes; ++i) row += confusion[k * classes + i], column += confusion[i * classes + k];
    const double hits = confusion[k * classes + k], all = row + column - hits;
    if (all <= 0) continue;
    sum += hits / all;
    count += 1;
  }
  return ratio(sum, count);
}

/// True positives, predicted and occurring of each class: [3 classes]; then predictions that are no probabilities,
/// where these are compared with a threshold.
Tensor class_counts(const std::string& metric, std::int64_t classes, std::optional<double> threshold, const Tensor& y,
                    const Tensor& prediction, const Tensor& sample_weight) {
  check_pair(metric, y, prediction);
  require(prediction.shape().rank() == 2 && prediction.shape()[1] == classes, metric, ": the prediction is ",
          prediction.spec(), ", expected [batch, ", classes, "]");
  const Tensor p = cast(prediction, f64);
  const Tensor positive = threshold ? cast(p > *threshold, f64) : one_hot(argmax(p), classes, f64);
  const Tensor weight = weights_of(metric, sample_weight, prediction), is_true = multiply_no_nan(cast(y, f64), weight);
  const auto total = [](const Tensor& each) { return reduce_sum(each, {.axis = {0}}); };
  const Tensor misfits = threshold ? outside_of_probabilities(p, weight) : zeros({}, f64);
  return concat({total(positive * is_true), total(positive * weight), total(is_true), reshape(misfits, {1})});
}

std::vector<double> f_beta(std::span<const double> totals, const FBetaOptions& options) {
  const std::size_t n = totals.size() / 3;
  const double square = options.beta * options.beta;
  const auto score = [&](double hits, double predicted, double occurring) {
    const double precision = ratio(hits, predicted), recall = ratio(hits, occurring);
    return ratio((1 + square) * precision * recall, square * precision + recall);
  };
  std::vector<double> each;
  double hits = 0, predicted = 0, occurring = 0, sum = 0, weighted = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const double one = score(totals[k], totals[n + k], totals[2 * n + k]);
    hits += totals[k], predicted += totals[n + k], occurring += totals[2 * n + k];
    each.push_back(one);
    sum += one, weighted += one * totals[2 * n + k];
  }
  switch (options.average) {
    case ClassAverage::none: return each;
    case ClassAverage::macro: return {sum / static_cast<double>(n)};
    case ClassAverage::micro: return {score(hits, predicted, occurring)};
    case ClassAverage::weighted: return {ratio(weighted, occurring)};
  }
  throw InternalError("an average that does not exist");
}

std::int64_t checked_classes(const std::string& metric, std::int64_t classes) {
  require(classes > 0 && classes <= 1 << 12, metric, ": num_classes must be positive and at most 2^12, got ", classes);
  return classes;
}
std::vector<std::int64_t> all_of(std::int64_t classes) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < checked_classes("MeanIoU", classes); ++i) ids.push_back(i);
  return ids;
}
void check_share(const std::string& metric, double share) {
  require(share >= 0 && share <= 1, metric, ": expected a number in [0, 1], got ", share);
}

/// A metric of the counts at thresholds.
struct OfCounts : Metric {
  OfCounts(const std::string& name, const std::vector<double>& thresholds,
           std::function<double(std::span<const double>)> finish)
      : Metric(
            name, 4 * static_cast<std::int64_t>(thresholds.size()) + 1,
            [=](const Tensor& y, const Tensor& p, const Tensor& w) { return counts_at(name, thresholds, y, p, w); },
            [name, finish = std::move(finish)](std::span<const double> totals) {
              check_misfits(name, totals.back(), no_probabilities);
              return finish(totals);
            }) {}
};

OfCounts at_one(const std::string& name, ThresholdOption options, double (*finish)(const Counts&)) {
  check_options(name, options);
  return {name, {options.threshold}, [finish](std::span<const double> totals) { return finish({totals}); }};
}

OfCounts at_best(const std::string& name, OperatingPointOptions options, Rate bound, double least, Rate wanted) {
  check_share(name, least);
  return {name, even_thresholds(name, options.num_thresholds, 0),
          [=](std::span<const double> totals) { return best_at(totals, bound, least, wanted); }};
}

struct OfConfusion : Metric {
  OfConfusion(const std::string& name, std::int64_t classes, const std::vector<std::int64_t>& chosen,
              std::optional<double> threshold = {})
      : Metric(
            name, checked_classes(name, classes) * classes + 1,
            [=](const Tensor& y, const Tensor& p, const Tensor& w) {
              check_pair(name, y, p);
              const Tensor weight = weights_of(name, w, p);
              if (!threshold)
                return confusion(name, classes, y, p, w, fractions_in(p, weight) + fractions_in(y, weight));
              const Tensor is_positive = cast(cast(p, f64) >= *threshold, i64);
              return confusion(name, classes, y, is_positive, w, outside_of_probabilities(p, weight));
            },
            [=](std::span<const double> totals) {
              check_misfits(name, totals.back(),
                            threshold ? no_probabilities : "or labels are no whole numbers, so they are no classes");
              return mean_overlap(totals, static_cast<std::size_t>(classes), chosen);
            }) {
    for (const std::int64_t id : chosen)
      require(id >= 0 && id < classes, name, ": class ", id, " is none of ", classes);
  }
};

}  // namespace

TruePositives::TruePositives(ThresholdOption options)
    : Metric(at_one("true_positives", options, [](const Counts& c) { return c.tp(0); })) {}
TrueNegatives::TrueNegatives(ThresholdOption options)
    : Metric(at_one("true_negatives", options, [](const Counts& c) { return c.tn(0); })) {}
FalsePositives::FalsePositives(ThresholdOption options)
    : Metric(at_one("false_positives", options, [](const Counts& c) { return c.fp(0); })) {}
FalseNegatives::FalseNegatives(ThresholdOption options)
    : Metric(at_one("false_negatives", options, [](const Counts& c) { return c.fn(0); })) {}
Precision::Precision(ThresholdOption options)
    : Metric(at_one("precision", options, [](const Counts& c) { return c.precision(0); })) {}
Recall::Recall(ThresholdOption options)
    : Metric(at_one("recall", options, [](const Counts& c) { return c.recall(0); })) {}

AUC::AUC(AUCOptions options)
    : Metric(
          "auc", 4 * checked_options("AUC", options).num_thresholds + 1,
          [thresholds = even_thresholds("AUC", options.num_thresholds, 1e-7), logits = options.from_logits](
              const Tensor& y, const Tensor& p, const Tensor& w) {
            return counts_at("AUC", thresholds, y, logits ? sigmoid(p) : p, w);
          },
          [curve = options.curve](std::span<const double> totals) {
            check_misfits("AUC", totals.back(), no_probabilities);
            return curve == AUCCurve::roc ? area_of_roc({totals}) : area_of_pr({totals});
          }) {}

SensitivityAtSpecificity::SensitivityAtSpecificity(double specificity, OperatingPointOptions options)
    : Metric(at_best("sensitivity_at_specificity", options, &Counts::specificity, specificity, &Counts::recall)) {}
SpecificityAtSensitivity::SpecificityAtSensitivity(double sensitivity, OperatingPointOptions options)
    : Metric(at_best("specificity_at_sensitivity", options, &Counts::recall, sensitivity, &Counts::specificity)) {}
PrecisionAtRecall::PrecisionAtRecall(double recall, OperatingPointOptions options)
    : Metric(at_best("precision_at_recall", options, &Counts::recall, recall, &Counts::precision)) {}
RecallAtPrecision::RecallAtPrecision(double precision, OperatingPointOptions options)
    : Metric(at_best("recall_at_precision", options, &Counts::precision, precision, &Counts::recall)) {}

namespace {

struct OfClasses : Metric {
  OfClasses(const std::string& name, std::int64_t classes, const FBetaOptions& options)
      : Metric(
            name, 3 * checked_classes(name, classes) + 1,
            [=](const Tensor& y, const Tensor& p, const Tensor& w) {
              return class_counts(name, classes, options.threshold, y, p, w);
            },
            [=](std::span<const double> totals) {
              check_misfits(name, totals.back(), no_probabilities);
              return f_beta(totals, options);
            }) {
    check_options(name, options);
  }
};

FBetaOptions with_beta_1(FBetaOptions options) {
  require(options.beta == 1, "F1Score: beta is 1; FBetaScore takes others");
  return options;
}

}  // namespace

FBetaScore::FBetaScore(std::int64_t num_classes, FBetaOptions options)
    : Metric(OfClasses("fbeta_score", num_classes, options)) {}
F1Score::F1Score(std::int64_t num_classes, FBetaOptions options)
    : Metric(OfClasses("f1_score", num_classes, with_beta_1(options))) {}

MeanIoU::MeanIoU(std::int64_t num_classes) : Metric(OfConfusion("mean_io_u", num_classes, all_of(num_classes))) {}
IoU::IoU(std::int64_t num_classes, std::vector<std::int64_t> target_class_ids)
    : Metric(OfConfusion("io_u", num_classes, target_class_ids)) {}
BinaryIoU::BinaryIoU(ThresholdOption options)
    : Metric(OfConfusion("binary_io_u", 2, {0, 1}, checked_options("BinaryIoU", options).threshold)) {}

RootMeanSquaredError::RootMeanSquaredError()
    : Metric(
          "root_mean_squared_error", 2,
          [](const Tensor& y, const Tensor& p, const Tensor& w) {
            check_pair("RootMeanSquaredError", y, p);
            const Tensor weight = weights_of("RootMeanSquaredError", w, p);
            return stack(
                {reduce_sum(multiply_no_nan(square(cast(y, f64) - cast(p, f64)), weight)), reduce_sum(weight)});
          },
          [](std::span<const double> totals) {
            return totals[1] == 0 ? std::numeric_limits<double>::quiet_NaN() : std::sqrt(totals[0] / totals[1]);
          }) {}

LogCoshError::LogCoshError() : Metric("logcosh", [](const Tensor& y, const Tensor& p) { return log_cosh(y, p); }) {}

Accuracy::Accuracy()
    : Metric("accuracy", [](const Tensor& y, const Tensor& p) {
        check_pair("Accuracy", y, p);
        return equal(cast(y, f64), cast(p, f64));
      }) {}

namespace {

/// For each output, as far as it exists: sums of y, y^2, the squared error and the weight, [4, most]; an example's
/// outputs stand in the last axis.
Tensor deviations(std::int64_t most, const Tensor& y, const Tensor& prediction, const Tensor& w) {
  check_pair("R2Score", y, prediction);
  const int rank = prediction.shape().rank();
  const std::int64_t outputs = rank < 2 ? 1 : prediction.shape().back();
  require(outputs >= 0 && outputs <= most, "R2Score: the prediction is ", prediction.spec(), ", which has more than ",
          most, " outputs, or it is not known how many; say {.max_outputs = n}");
  const auto by_output = [&](const Tensor& x) { return reshape(x, {any_size, std::max<std::int64_t>(outputs, 1)}); };
  const Tensor weight = by_output(weights_of("R2Score", w, prediction)), target = by_output(cast(y, f64));
  const auto total = [&](const Tensor& x) {
    return pad(reduce_sum(x, {.axis = {0}}), {{0, most - std::max<std::int64_t>(outputs, 1)}});
  };
  const auto weighted = [&](const Tensor& x) { return total(multiply_no_nan(x, weight)); };
  return concat({weighted(target), weighted(square(target)),
                 weighted(square(target - by_output(cast(prediction, f64)))), total(weight)});
}

/// Keras's, with its correction for the number of regressors.
double r2_score(std::span<const double> totals, const R2ScoreOptions& options) {
  const std::size_t n = totals.size() / 4;
  double sum = 0, share = 0, examples = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const double weight = totals[3 * n + k];
    if (weight == 0) continue;
    const double spread = totals[n + k] - totals[k] * totals[k] / weight;
    const double score = spread <= 0 ? 0 : 1 - totals[2 * n + k] / spread;
    const double counts = options.class_aggregation == OutputAverage::uniform_average ? 1 : std::max(spread, 0.0);
    sum += score * counts, share += counts, examples = std::max(examples, weight);
  }
  if (examples == 0) return std::numeric_limits<double>::quiet_NaN();
  const double score = ratio(sum, share), regressors = static_cast<double>(options.num_regressors);
  if (options.num_regressors == 0) return score;
  require(examples - regressors - 1 > 0, "R2Score: ", regressors, " num_regressors are too many for ", examples,
          " examples");
  return 1 - (1 - score) * (examples - 1) / (examples - regressors - 1);
}

}  // namespace

R2Score::R2Score() : R2Score(R2ScoreOptions{}) {}
R2Score::R2Score(R2ScoreOptions options)
    : Metric(
          "r2_score", 4 * checked_options("R2Score", options).max_outputs,
          [most = options.max_outputs](const Tensor& y, const Tensor& p, const Tensor& w) {
            return deviations(most, y, p, w);
          },
          [options](std::span<const double> totals) { return r2_score(totals, options); }) {}

}  // namespace gradus
