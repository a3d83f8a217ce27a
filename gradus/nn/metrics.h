/// Metrics: weighted means over examples, gathered on the device. Updating waits for nothing; reading the result does.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include "gradus/base/ranges.h"
#include "gradus/function/variable.h"
#include "gradus/nn/losses.h"

namespace gradus {

/// A value: copies gather on their own. In a traced function an update is part of the program.
class Metric {
 public:
  /// per_example(y, prediction) gives a number, or whether something holds, for each example. Narrow floats come to it
  /// as f32, as to a loss.
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, Tensor, Tensor>
  Metric(std::string name, F per_example)
      : Metric(std::move(name), Rule([f = std::move(per_example)](const Tensor& y, const Tensor& prediction) -> Tensor {
                 return f(y, prediction);
               }),
               0) {}
  Metric(const char*) = delete;  // metrics are objects: SparseCategoricalAccuracy()
  Metric(const Metric& other);
  Metric(Metric&& other) noexcept;
  Metric& operator=(Metric other) noexcept;
  ~Metric();

  void update(const Tensor& y, const Tensor& prediction);
  /// sample_weight: one number per example, or one for each row of axis 0. Of weight 0 nothing counts, not even NaN or
  /// a label that is no class.
  void update(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight);
  /// Of nothing: NaN.
  double result() const;
  void reset();
  const std::string& name() const;
  /// What was gathered, for checkpoints; within a trace what traced calls gathered.
  Variables variables() const;

 protected:
  using Rule = std::function<Tensor(const Tensor& y, const Tensor& prediction)>;
  Metric(std::string name, Rule rule, int);
  /// What a batch adds to the totals, f64 [count]. The weight is empty, or one number per example, or one for each row
  /// of axis 0.
  using Gather = std::function<Tensor(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight)>;
  /// The result, from the totals.
  using Finish = std::function<double(std::span<const double> totals)>;
  Metric(std::string name, std::int64_t count, Gather gather, Finish finish);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How often the largest prediction is that of the label.
struct SparseCategoricalAccuracy : Metric {
  SparseCategoricalAccuracy();
};
/// The same for one-hot labels.
struct CategoricalAccuracy : Metric {
  CategoricalAccuracy();
};
struct TopKAccuracyOptions {
  std::int64_t k = 5;
  static constexpr auto ranges() { return std::array{Allowed::positive("k")}; }
};
/// How often fewer than k predictions are larger than that of the label.
struct SparseTopKCategoricalAccuracy : Metric {
  SparseTopKCategoricalAccuracy() : SparseTopKCategoricalAccuracy(TopKAccuracyOptions()) {}
  explicit SparseTopKCategoricalAccuracy(TopKAccuracyOptions options);
};
/// The same for one-hot labels.
struct TopKCategoricalAccuracy : Metric {
  TopKCategoricalAccuracy() : TopKCategoricalAccuracy(TopKAccuracyOptions()) {}
  explicit TopKCategoricalAccuracy(TopKAccuracyOptions options);
};
/// How often a probability above 1/2, a logit above 0, agrees with y.
struct BinaryAccuracy : Metric {
  template <PredictionForm P> explicit BinaryAccuracy(P) : BinaryAccuracy(std::same_as<P, from_logits_t>) {}

 private:
  explicit BinaryAccuracy(bool logits);
};
struct MeanAbsoluteError : Metric {
  MeanAbsoluteError();
};

}  // namespace gradus
