/// The lists, by task.
#include "gradus/train/named_parts.h"
#include "gradus/nn/class_losses.h"
#include "gradus/nn/classification_metrics.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/softmax.h"

namespace gradus {
namespace {

template <auto f> LossFunction per_example() {
  return PerExampleLoss([](const Tensor& y, const Tensor& prediction) { return f(y, prediction); });
}
/// `f` takes one-hot rows and logits.
template <auto f> LossFunction of_one_hot() {
  return PerExampleLoss([](const Tensor& y, const Tensor& logits) {
    return f(one_hot(y, logits.shape().back(), logits.dtype()), logits);
  });
}
/// A metric of the library's loss per example.
template <auto f> Metric mean_of(std::string name) {
  return Metric(std::move(name), [](const Tensor& y, const Tensor& prediction) { return f(y, prediction); });
}

using Y = const Tensor&;
constexpr auto crossentropy = [](Y y, Y x) { return categorical_crossentropy(y, x, from_logits); };
constexpr auto focal = [](Y y, Y x) { return categorical_focal_crossentropy(y, x, from_logits); };
constexpr auto generalized = [](Y y, Y x) { return categorical_generalized_cross_entropy(y, softmax(x)); };
constexpr auto margin = [](Y y, Y x) { return categorical_hinge(y, x); };
constexpr auto binary = [](Y y, Y x) { return binary_crossentropy(y, x, from_logits); };
constexpr auto binary_focal = [](Y y, Y x) { return binary_focal_crossentropy(y, x, from_logits); };
constexpr auto directions = [](Y y, Y x) { return cosine_similarity(y, x); };

}  // namespace

const std::vector<LossByName>& named_losses() {
  static const std::vector<LossByName> all{
      {"sparse_categorical_crossentropy", true,
       [] { return LossFunction(SparseCategoricalCrossentropy(from_logits)); }},
      {"categorical_crossentropy", true, of_one_hot<crossentropy>},
      {"categorical_focal_crossentropy", true, of_one_hot<focal>},
      {"categorical_generalized_cross_entropy", true, per_example<generalized>},
      {"categorical_hinge", true, of_one_hot<margin>},
      {"mean_squared_error", false, [] { return LossFunction(MeanSquaredError()); }},
      {"mean_absolute_error", false, per_example<mean_absolute_error>},
      {"mean_absolute_percentage_error", false, per_example<mean_absolute_percentage_error>},
      {"mean_squared_logarithmic_error", false, per_example<mean_squared_logarithmic_error>},
      {"log_cosh", false, per_example<log_cosh>},
      {"huber", false, [] { return LossFunction(Huber()); }},
      {"hinge", false, per_example<hinge>},
      {"squared_hinge", false, per_example<squared_hinge>},
      {"kl_divergence", false, per_example<kl_divergence>},
      {"poisson", false, per_example<poisson>},
      {"cosine_similarity", false, per_example<directions>},
      {"binary_crossentropy", false, per_example<binary>},
      {"binary_focal_crossentropy", false, per_example<binary_focal>},
  };
  return all;
}

const std::vector<MetricByName>& named_metrics() {
  static const std::vector<MetricByName> all{
      {"sparse_categorical_accuracy", true, [] { return Metric(SparseCategoricalAccuracy()); }},
      {"sparse_top_k_categorical_accuracy", true, [] { return Metric(SparseTopKCategoricalAccuracy()); }},
      {"sparse_categorical_crossentropy", true,
       [] {
         return Metric("sparse_categorical_crossentropy", [](const Tensor& y, const Tensor& x) {
           return sparse_categorical_crossentropy(y, x, from_logits);
         });
       }},
      {"mean_absolute_error", false, [] { return Metric(MeanAbsoluteError()); }},
      {"mean_squared_error", false, [] { return mean_of<mean_squared_error>("mean_squared_error"); }},
      {"root_mean_squared_error", false, [] { return Metric(RootMeanSquaredError()); }},
      {"mean_absolute_percentage_error", false,
       [] { return mean_of<mean_absolute_percentage_error>("mean_absolute_percentage_error"); }},
      {"mean_squared_logarithmic_error", false,
       [] { return mean_of<mean_squared_logarithmic_error>("mean_squared_logarithmic_error"); }},
      {"logcosh", false, [] { return Metric(LogCoshError()); }},
      {"r2_score", false, [] { return Metric(R2Score()); }},
      {"binary_accuracy", false, [] { return Metric(BinaryAccuracy(from_logits)); }},
  };
  return all;
}

}  // namespace gradus
