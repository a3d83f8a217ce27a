/// Every loss and every metric in training, whatever type the model's last layer computes in.
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/nn/class_losses.h"
#include "gradus/nn/classification_metrics.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/model.h"
#include "gradus/nn/rearranging.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/softmax.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/fit.h"

namespace gradus::metrics_of_policies_test {
namespace {

constexpr std::int64_t rows = 8, classes = 3;
const Tensor inputs = random::normal({rows, 4}, {.seed = 1});
const Tensor shares = one_hot(random::integers({rows}, {.high = classes, .seed = 2}), classes);
const Tensor labels = argmax(shares);

struct Case {
  std::string name;
  LossFunction loss;
  Metric metric;
  Tensor y;
};

std::vector<Case> cases() {
  const LossFunction squared = MeanSquaredError(), crossentropy = CategoricalCrossentropy(from_probabilities);
  const LossFunction sparse = SparseCategoricalCrossentropy(from_probabilities);
  const Metric mean = MeanAbsoluteError(), best = CategoricalAccuracy(), of_labels = SparseCategoricalAccuracy();
  std::vector<Case> all;
  for (const auto& [name, loss] : std::initializer_list<std::pair<const char*, LossFunction>>{
           {"mean_squared_error", squared},
           {"mean_absolute_error", PerExampleLoss(mean_absolute_error)},
           {"mean_absolute_percentage_error", MeanAbsolutePercentageError()},
           {"mean_squared_logarithmic_error", MeanSquaredLogarithmicError()},
           {"log_cosh", LogCosh()},
           {"huber", Huber()},
           {"hinge", Hinge()},
           {"squared_hinge", SquaredHinge()},
           {"categorical_hinge", CategoricalHinge()},
           {"kl_divergence", KLDivergence()},
           {"poisson", Poisson()},
           {"cosine_similarity", CosineSimilarity()},
           {"binary_crossentropy", BinaryCrossentropy(from_probabilities)},
           {"categorical_crossentropy", crossentropy},
           {"binary_focal", BinaryFocalCrossentropy(from_probabilities)},
           {"categorical_focal", CategoricalFocalCrossentropy(from_probabilities)},
           {"dice", Dice()},
           {"tversky", Tversky()}})
    all.push_back({name, loss, mean, shares});
  all.push_back({"sparse", sparse, of_labels, labels});
  all.push_back({"sparse top 2", sparse, SparseTopKCategoricalAccuracy({.k = 2}), labels});
  all.push_back({"generalized", CategoricalGeneralizedCrossEntropy(), of_labels, labels});
  for (const auto& metric : std::initializer_list<Metric>{
           best,
           TopKCategoricalAccuracy({.k = 2}),
           BinaryAccuracy(from_probabilities),
           mean,
           RootMeanSquaredError(),
           LogCoshError(),
           R2Score(),
           Accuracy(),
           AUC(),
           Precision(),
           Recall(),
           TruePositives(),
           FalseNegatives(),
           PrecisionAtRecall(0.5),
           FBetaScore(classes, {.average = ClassAverage::macro}),
           F1Score(classes, {.average = ClassAverage::macro, .threshold = 0.5}),
           BinaryIoU(),
           Metric("mean_squared_error", mean_squared_error),
           Metric("log_cosh", log_cosh),
           Metric("hinge", hinge),
           Metric("own", [](Tensor y, Tensor p) { return reduce_max(abs(y - p), {.axis = {-1}}); })})
    all.push_back({metric.name(), crossentropy, metric, shares});
  return all;
}

constexpr std::pair<const char*, Policy> policies[] = {
    {"float32", float32}, {"mixed_float16", mixed_float16}, {"mixed_bfloat16", mixed_bfloat16}};

/// What fit does with a batch, op by op.
TEST(MetricsOfPolicies, EveryLossAndMetricTakesEveryPrediction) {
  for (const Case& each : cases()) {
    double exact = 0, exact_loss = 0;
    for (const auto& [name, policy] : policies) {
      SCOPED_TRACE(each.name + " " + name);
      set_seed(3);
      const Sequential model({Dense(classes), Softmax()}, {.policy = policy});
      Metric metric = each.metric;
      double value = 0, loss = 0;
      ASSERT_NO_THROW({
        const Tensor prediction = model(inputs);
        metric.update(each.y, prediction);
        value = metric.result();
        loss = each.loss(each.y, prediction).value().item();
      });
      ASSERT_TRUE(std::isfinite(value) && std::isfinite(loss));
      if (policy == float32) exact = value, exact_loss = loss;
      EXPECT_NEAR(value, exact, 0.3 + 0.05 * std::abs(exact));  // the same metric, in fewer digits
      EXPECT_NEAR(loss, exact_loss, 0.05 + 0.05 * std::abs(exact_loss));
    }
  }
}

TEST(MetricsOfPolicies, FitEvaluateAndValidationTakeThem) {
  const std::vector<Metric> metrics{MeanAbsoluteError(), LogCoshError(),        R2Score(), AUC(),
                                    Precision(),         Metric("hinge", hinge)};
  const auto data = data::from_tensor_slices(inputs, shares).batch(4);
  for (const auto& [name, policy] : policies) {
    SCOPED_TRACE(name);
    set_seed(3);
    Sequential model({Dense(classes), Softmax()}, {.policy = policy});
    SGD optimizer({.learning_rate = 1e-3});
    History history;
    ASSERT_NO_THROW(history = fit(model, optimizer, CategoricalCrossentropy(from_probabilities), data,
                                  {.metrics = metrics, .validation = data, .verbose = false}));
    for (const Metric& metric : metrics) EXPECT_TRUE(std::isfinite(history["validation_" + metric.name()].back()));
    ASSERT_NO_THROW(evaluate(model, CategoricalCrossentropy(from_probabilities), data, {.metrics = metrics}));
  }
}

/// Labels in other types than the prediction's.
TEST(MetricsOfPolicies, LabelsOfOtherTypes) {
  const Tensor prediction = softmax(random::normal({rows, classes}, {.seed = 5}));
  for (const DType of_labels : {f32, f16, bf16})
    for (const DType of_prediction : {f32, f16, bf16}) {
      MeanAbsoluteError metric;
      metric.update(cast(shares, of_labels), cast(prediction, of_prediction));
      EXPECT_NEAR(metric.result(), reduce_mean(abs(shares - prediction)).item(), 5e-3);
    }
}

}  // namespace
}  // namespace gradus::metrics_of_policies_test
