/// Losses. The functions give one number per example; the classes of the same name make a Loss of them. Whether
/// predictions are logits or probabilities is said, never assumed. Targets of another dtype are cast to the
/// prediction's.
///
/// Classes stand in the last axis of a prediction; all axes before it count examples: of [batch, time, classes] there
/// are batch * time. Of predictions [n] of regressions and binary classes each element is an example of its own.
#pragma once
#include <concepts>
#include <functional>
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/gradients/loss.h"

namespace gradus {

struct from_logits_t {};
inline constexpr from_logits_t from_logits{};
struct from_probabilities_t {};
inline constexpr from_probabilities_t from_probabilities{};
template <class T>
concept PredictionForm = std::same_as<T, from_logits_t> || std::same_as<T, from_probabilities_t>;

namespace detail {
Tensor categorical_crossentropy(const Tensor& y, const Tensor& prediction, bool logits);
Tensor sparse_categorical_crossentropy(const Tensor& y, const Tensor& prediction, bool logits);
Tensor binary_crossentropy(const Tensor& y, const Tensor& prediction, bool logits);
}  // namespace detail

// `from_logits` of the output of a softmax (or sigmoid, for binary) is an InvalidArgument. Probabilities are clipped to
// [1e-7, 1 - 1e-7] before the logarithm, as Keras does.

/// -sum(y * log(p)); y is of the prediction's shape.
template <PredictionForm P> Tensor categorical_crossentropy(const Tensor& y, const Tensor& prediction, P) {
  return detail::categorical_crossentropy(y, prediction, std::same_as<P, from_logits_t>);
}
/// -log(p[y]); y holds classes as integers, of the prediction's shape without the last axis. A label outside the
/// classes is an OutOfRange when the value is observed.
template <PredictionForm P> Tensor sparse_categorical_crossentropy(const Tensor& y, const Tensor& prediction, P) {
  return detail::sparse_categorical_crossentropy(y, prediction, std::same_as<P, from_logits_t>);
}
/// -(y log(p) + (1 - y) log(1 - p)), the mean over the last axis; y is of the prediction's shape.
template <PredictionForm P> Tensor binary_crossentropy(const Tensor& y, const Tensor& prediction, P) {
  return detail::binary_crossentropy(y, prediction, std::same_as<P, from_logits_t>);
}
/// The mean over the last axis. Shapes must agree: [n] against [n, 1] is an InvalidArgument, not a broadcast.
Tensor mean_squared_error(const Tensor& y, const Tensor& prediction);
Tensor mean_absolute_error(const Tensor& y, const Tensor& prediction);

/// A value. sample_weight has one number per example, or one for each row of axis 0. An example of weight exactly 0, or
/// with a label that is ignored, is out: whatever its y and prediction are, NaN, infinite or no class, value and
/// gradients are those of the other examples, and its own gradient is 0.
class LossFunction {
 public:
  Loss operator()(const Tensor& y, const Tensor& prediction) const;
  Loss operator()(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) const;

 protected:
  /// One number per example.
  using Rule = std::function<Tensor(const Tensor& y, const Tensor& prediction)>;
  /// Where the rule alone does not say it.
  struct Examples {
    /// Axes of the prediction that one loss is taken over. Else examples are its first dimensions.
    std::optional<std::vector<int>> taken_over = {};
    /// bool: which examples count; else all.
    Rule counts = {};
    /// The rule where there are weights, of losses in which examples meet.
    std::function<Tensor(const Tensor& y, const Tensor& prediction, const Tensor& weight)> weighted = {};
  };
  explicit LossFunction(Rule rule) : LossFunction(std::move(rule), Examples()) {}
  LossFunction(Rule rule, Examples examples) : rule_(std::move(rule)), examples_(std::move(examples)) {}

 private:
  Loss of(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) const;
  Rule rule_;
  Examples examples_;
};

struct SmoothingOptions {
  double label_smoothing = 0;  // y becomes y * (1 - s) + s / classes (binary: s / 2)
  static constexpr auto ranges() { return std::array{Allowed::share("label_smoothing")}; }
};
struct IgnoreOptions {
  std::optional<std::int64_t> ignore_class = {};  // labels that count nothing; if all are ignored, the loss is 0
  static constexpr auto ranges() { return std::array{Allowed::any("ignore_class")}; }
};

struct CategoricalCrossentropy : LossFunction {
  CategoricalCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit CategoricalCrossentropy(P, SmoothingOptions options = {})
      : CategoricalCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  CategoricalCrossentropy(bool logits, SmoothingOptions options);
};
struct BinaryCrossentropy : LossFunction {
  BinaryCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit BinaryCrossentropy(P, SmoothingOptions options = {})
      : BinaryCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  BinaryCrossentropy(bool logits, SmoothingOptions options);
};
struct SparseCategoricalCrossentropy : LossFunction {
  SparseCategoricalCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit SparseCategoricalCrossentropy(P, IgnoreOptions options = {})
      : SparseCategoricalCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  SparseCategoricalCrossentropy(bool logits, IgnoreOptions options);
  static Examples not_ignored(const IgnoreOptions& options);
};
struct MeanSquaredError : LossFunction {
  MeanSquaredError();
};
struct HuberOptions {
  double delta = 1;
  static constexpr auto ranges() { return std::array{Allowed::positive("delta")}; }
};
/// Within delta e^2 / 2, beyond delta (|e| - delta / 2) (Huber 1964), the mean over the last axis.
struct Huber : LossFunction {
  Huber();
  explicit Huber(HuberOptions options);
};

// For the rooms of the library.

/// Whether `x` is surely what softmax (or sigmoid) gave: seen from the ops that made it, so never once they are gone.
bool is_softmax(const Tensor& x);
bool is_sigmoid(const Tensor& x);
/// InvalidArgument unless y is of the prediction's shape; `op` opens it.
void check_same_shape(std::string_view op, const Tensor& y, const Tensor& prediction);
/// InvalidArgument unless y holds integers, one for each row of the prediction's last axis.
void check_labels(std::string_view op, const Tensor& y, const Tensor& prediction);
/// `weight` of the shape of x, which is y or a prediction: for x's first dimensions, or for those that are not in
/// `taken_over`. Empty if it does not fit.
Tensor weight_beside(const Tensor& weight, const Tensor& x, const std::optional<std::vector<int>>& taken_over = {});
/// bool: where the weight is exactly 0.
Tensor is_left_out(const Tensor& weight);
/// y with 0 for integers of weight 0, which need be no labels. The weight may be empty or not fit: then y itself.
Tensor labels_that_count(const Tensor& y, const Tensor& weight);
/// sample_weight as numbers of the dtype and shape of `per_example`: one an element, or one for all at a place of the
/// first dimensions. InvalidArgument if it does not fit.
Tensor fitted_weight(std::string_view op, const Tensor& sample_weight, const Tensor& per_example);

}  // namespace gradus
