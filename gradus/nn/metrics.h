/// Metrics: weighted means over examples, accumulated on the device. Updating waits for nothing; reading the result
/// does.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/function/variable.h"
#include "gradus/nn/losses.h"

namespace gradus {

namespace detail {
/// The names of Keras's metric functions; here metrics are objects.
struct MetricName {
  template <class... T> void operator()(const T&...) const = delete;  // an object: SparseCategoricalAccuracy()
};
}  // namespace detail

/// A metric as a value: copies accumulate on their own. In a traced function an update is part of the program.
class Metric {
 public:
  /// per_example(y, prediction) gives a number or a boolean per example. Narrow floats are passed as f32, as to a loss.
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, Tensor, Tensor>
  Metric(std::string name, F per_example)
      : Metric(std::move(name), Rule([f = std::move(per_example)](const Tensor& y, const Tensor& prediction) -> Tensor {
                 return f(y, prediction);
               }),
               0) {}
  /// Gives the terms that a batch adds to the totals, f64 [count]. `sample_weight` is empty, or has one number per
  /// example, or one per row of axis 0: weights() turns it into numbers in each case. Within `fit` it is traced.
  using Gather = std::function<Tensor(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight)>;
  /// Gives the result from the totals, on the host.
  using Finish = std::function<double(std::span<const double> totals)>;
  /// Gives several results from the totals, always equally many.
  using FinishAll = std::function<std::vector<double>(std::span<const double> totals)>;
  /// A metric that is no mean over examples: `count` totals, to which `gather` adds and from which `finish` computes
  /// the result. Totals add up over batches, parts of batches, shards and processes. InvalidArgument without a name, or
  /// unless `count` is positive.
  Metric(std::string name, std::int64_t count, Gather gather, Finish finish);
  Metric(std::string name, std::int64_t count, Gather gather, FinishAll finish);
  /// The weights as numbers in f64 and the shape of `per_example`: ones if `sample_weight` is empty. InvalidArgument if
  /// it does not fit.
  static Tensor weights(const Tensor& sample_weight, const Tensor& per_example);
  Metric(const char*) = delete;         // metrics are objects: SparseCategoricalAccuracy()
  Metric(detail::MetricName) = delete;  // metrics are objects: SparseCategoricalAccuracy()
  Metric(const Metric& other);
  Metric(Metric&& other) noexcept;
  Metric& operator=(Metric other) noexcept;
  ~Metric();

  /// Adds a batch. Examples that a mask of the prediction leaves out do not count, as in fit.
  void update(const Tensor& y, const Tensor& prediction);
  /// Adds a batch. sample_weight: one number per example, or one per row of axis 0. Examples of weight 0 do not count,
  /// even if they are NaN or have a label that is no class.
  void update(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight);
  /// The metric over all that was added; waits. NaN if nothing was added. InvalidArgument for a metric of several
  /// numbers, such as one a class.
  double result() const;
  /// All its numbers: result(), or one for each class.
  std::vector<double> results() const;
  /// The names of results() in logs: name(), or name_0, name_1 ...
  std::vector<std::string> result_names() const;
  /// Starts over.
  void reset();
  /// The name in logs.
  const std::string& name() const;
  /// The accumulated values, for checkpoints; within a trace, those that traced calls accumulated.
  Variables variables() const;

  // For the rooms of the library.
  /// Adds a batch with this weight, which may be empty, ignoring the mask of the prediction.
  void update_weighed(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight);

 protected:
  /// Gives one number per example.
  using Rule = std::function<Tensor(const Tensor& y, const Tensor& prediction)>;
  Metric(std::string name, Rule rule, int);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Share of examples whose largest prediction is that of the label.
struct SparseCategoricalAccuracy : Metric {
  SparseCategoricalAccuracy();
};
/// SparseCategoricalAccuracy for one-hot labels.
struct CategoricalAccuracy : Metric {
  CategoricalAccuracy();
};
/// Options of top-k accuracies.
struct TopKAccuracyOptions {
  std::int64_t k = 5;  // number of predictions that may be right
  static constexpr auto ranges() { return std::array{Allowed::positive("k")}; }
};
/// Share of examples for which fewer than k predictions are larger than that of the label.
struct SparseTopKCategoricalAccuracy : Metric {
  SparseTopKCategoricalAccuracy() : SparseTopKCategoricalAccuracy(TopKAccuracyOptions()) {}
  explicit SparseTopKCategoricalAccuracy(TopKAccuracyOptions options);
};
/// SparseTopKCategoricalAccuracy for one-hot labels.
struct TopKCategoricalAccuracy : Metric {
  TopKCategoricalAccuracy() : TopKCategoricalAccuracy(TopKAccuracyOptions()) {}
  explicit TopKCategoricalAccuracy(TopKAccuracyOptions options);
};
/// Share of probabilities above 1/2, or logits above 0, that agree with y.
struct BinaryAccuracy : Metric {
  template <PredictionForm P> explicit BinaryAccuracy(P) : BinaryAccuracy(std::same_as<P, from_logits_t>) {}

 private:
  explicit BinaryAccuracy(bool logits);
};
/// Mean of |y - prediction|.
struct MeanAbsoluteError : Metric {
  MeanAbsoluteError();
};

/// Names of Keras's metric functions, which are no metrics here: metrics are objects, as SparseCategoricalAccuracy().
inline constexpr detail::MetricName binary_accuracy{}, categorical_accuracy{}, sparse_categorical_accuracy{};

}  // namespace gradus
