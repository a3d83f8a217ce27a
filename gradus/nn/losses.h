/// Losses. The functions give one number per example; the classes of the same name make a Loss of them. The user
/// declares predictions as logits or probabilities; neither is assumed. Targets of another dtype are cast to the
/// prediction's.
///
/// Classes stand in the last axis of a prediction, and all axes before it count examples: [batch, time, classes] has
/// batch * time. In predictions [n] of regressions and binary classes, each element is an example of its own.
#pragma once
#include <concepts>
#include <functional>
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/gradients/loss.h"
#include "gradus/nn/masks.h"

namespace gradus {

/// The type of from_logits.
struct from_logits_t {};
/// Declares that predictions are logits, unnormalised log-probabilities.
inline constexpr from_logits_t from_logits{};
/// The type of from_probabilities.
struct from_probabilities_t {};
/// Declares that predictions are probabilities.
inline constexpr from_probabilities_t from_probabilities{};
/// from_logits or from_probabilities.
template <class T>
concept PredictionForm = std::same_as<T, from_logits_t> || std::same_as<T, from_probabilities_t>;

namespace detail {
Tensor categorical_crossentropy(const Tensor& y, const Tensor& prediction, bool logits);
Tensor sparse_categorical_crossentropy(const Tensor& y, const Tensor& prediction, bool logits);
Tensor binary_crossentropy(const Tensor& y, const Tensor& prediction, bool logits);
}  // namespace detail

/// The reaction of a loss that is called with `from_logits` on the output of a softmax (or sigmoid, for binary).
enum class RepeatedSoftmax {
  refused,  // InvalidArgument
  noticed,  // a notice, once for each of the three losses; the loss treats the prediction as logits, as declared
};
/// Sets the reaction for the whole process; at first it is `refused`. Each loss then gives its notice again. Returns
/// the reaction before.
RepeatedSoftmax set_repeated_softmax(RepeatedSoftmax answer);

// `from_logits` with the output of a softmax (or sigmoid, for binary) is an InvalidArgument, unless
// set_repeated_softmax says otherwise. Probabilities are clipped to [1e-7, 1 - 1e-7] before the logarithm, as in Keras.

/// Categorical crossentropy -sum(y * log(p)). y has the prediction's shape.
template <PredictionForm P> Tensor categorical_crossentropy(const Tensor& y, const Tensor& prediction, P) {
  return detail::categorical_crossentropy(y, prediction, std::same_as<P, from_logits_t>);
}
/// Crossentropy -log(p[y]). y holds classes as integers, in the prediction's shape without the last axis. A label
/// outside the classes is an OutOfRange when the value is observed.
template <PredictionForm P> Tensor sparse_categorical_crossentropy(const Tensor& y, const Tensor& prediction, P) {
  return detail::sparse_categorical_crossentropy(y, prediction, std::same_as<P, from_logits_t>);
}
/// Binary crossentropy -(y log(p) + (1 - y) log(1 - p)), the mean over the last axis. y has the prediction's shape.
template <PredictionForm P> Tensor binary_crossentropy(const Tensor& y, const Tensor& prediction, P) {
  return detail::binary_crossentropy(y, prediction, std::same_as<P, from_logits_t>);
}
/// (y - p)^2, the mean over the last axis. Shapes must agree: [n] against [n, 1] is an InvalidArgument, not a
/// broadcast.
Tensor mean_squared_error(const Tensor& y, const Tensor& prediction);
/// |y - p|, the mean over the last axis. Shapes must agree, as for mean_squared_error.
Tensor mean_absolute_error(const Tensor& y, const Tensor& prediction);

/// A loss function as a value. sample_weight has one number per example, or one per row of axis 0. An example with a
/// weight of exactly 0, or with an ignored label, is left out, even if its y or prediction is NaN, infinite or no
/// class: value and gradients are those of the other examples, and its own gradient is 0. A mask of the prediction
/// leaves out elements in the same way, as in Keras; in a loss over whole sequences, as CTC, it leaves out steps.
class LossFunction {
 public:
  /// The mean over examples, with the number of examples as weight, or with the sum of sample_weight.
  Loss operator()(const Tensor& y, const Tensor& prediction) const;
  Loss operator()(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) const;

  // For the rooms of the library.
  /// The loss with this weight and this mask of the prediction, each of which may be empty.
  Loss weighed(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight, const Tensor& mask) const;

 protected:
  /// Gives one number per example.
  using Rule = std::function<Tensor(const Tensor& y, const Tensor& prediction)>;
  /// Examples of losses for which the rule alone does not determine them.
  struct Examples {
    /// Axes of the prediction that one loss is taken over. By default examples are its first dimensions.
    std::optional<std::vector<int>> taken_over = {};
    /// bool: the examples that count; by default all.
    Rule counts = {};
    /// The rule with weights, for losses in which examples meet.
    std::function<Tensor(const Tensor& y, const Tensor& prediction, const Tensor& weight)> weighted = {};
    /// The rule for examples that are sequences, of which the steps of the mask [batch, time] count.
    std::function<Tensor(const Tensor& y, const Tensor& prediction, const Tensor& mask)> of_steps = {};
    /// The remedy for a lost mask; empty: a sample weight.
    std::string_view remedy = {};
  };
  explicit LossFunction(Rule rule) : LossFunction(std::move(rule), Examples()) {}
  LossFunction(Rule rule, Examples examples) : rule_(std::move(rule)), examples_(std::move(examples)) {}

 private:
  Loss of(std::string_view op, const Tensor& y, const Tensor& prediction, const Tensor& sample_weight,
          const Tensor& steps) const;
  Tensor mask_of(const Tensor& prediction, const Tensor& sample_weight) const;
  Rule rule_;
  Examples examples_;
  detail::LostMaskNotice lost_mask_;
};

/// Options of crossentropies with label smoothing.
struct SmoothingOptions {
  double label_smoothing = 0;  // y becomes y * (1 - s) + s / classes (binary: s / 2)
  static constexpr auto ranges() { return std::array{Allowed::share("label_smoothing")}; }
};
/// Options of SparseCategoricalCrossentropy.
struct IgnoreOptions {
  std::optional<std::int64_t> ignore_class = {};  // label that is left out; if all are ignored, the loss is 0
  static constexpr auto ranges() { return std::array{Allowed::any("ignore_class")}; }
};

/// The Loss of categorical_crossentropy.
struct CategoricalCrossentropy : LossFunction {
  CategoricalCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit CategoricalCrossentropy(P, SmoothingOptions options = {})
      : CategoricalCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  CategoricalCrossentropy(bool logits, SmoothingOptions options);
};
/// The Loss of binary_crossentropy.
struct BinaryCrossentropy : LossFunction {
  BinaryCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit BinaryCrossentropy(P, SmoothingOptions options = {})
      : BinaryCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  BinaryCrossentropy(bool logits, SmoothingOptions options);
};
/// The Loss of sparse_categorical_crossentropy.
struct SparseCategoricalCrossentropy : LossFunction {
  SparseCategoricalCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit SparseCategoricalCrossentropy(P, IgnoreOptions options = {})
      : SparseCategoricalCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  SparseCategoricalCrossentropy(bool logits, IgnoreOptions options);
  static Examples not_ignored(const IgnoreOptions& options);
};
/// The Loss of mean_squared_error.
struct MeanSquaredError : LossFunction {
  MeanSquaredError();
};
/// Options of huber and Huber.
struct HuberOptions {
  double delta = 1;  // largest |e| of the parabola
  static constexpr auto ranges() { return std::array{Allowed::positive("delta")}; }
};
/// The Loss of huber: e^2 / 2 for |e| <= delta, beyond delta (|e| - delta / 2) (Huber 1964), the mean over the last
/// axis.
struct Huber : LossFunction {
  Huber();
  explicit Huber(HuberOptions options);
};

namespace detail::inline rooms {

/// True if `x` is certainly the result of a softmax (or sigmoid). False if the ops that computed it are gone.
bool is_softmax(const Tensor& x);
/// True if `x` is certainly the result of a sigmoid.
bool is_sigmoid(const Tensor& x);
/// InvalidArgument, opened by `op`, unless y has the prediction's shape.
void check_same_shape(std::string_view op, const Tensor& y, const Tensor& prediction);
/// InvalidArgument unless y holds integers, one per row of the prediction's last axis.
void check_labels(std::string_view op, const Tensor& y, const Tensor& prediction);
/// `weight` in the shape of x, which is y or a prediction. It stands for x's first dimensions, or for those that are
/// not in `taken_over`. Empty if it does not fit.
Tensor weight_beside(const Tensor& weight, const Tensor& x, const std::optional<std::vector<int>>& taken_over = {});
/// The weight, if any, restricted to the places of the mask, if any. It has the larger number of dimensions of both.
Tensor joint_weight(const Tensor& sample_weight, const Tensor& mask, DType prediction);
/// bool: true where the weight is exactly 0.
Tensor is_left_out(const Tensor& weight);
/// y with 0 for integers of weight 0, which need not be labels. If the weight is empty or does not fit: y itself.
Tensor labels_that_count(const Tensor& y, const Tensor& weight);
/// sample_weight as numbers in the dtype and shape of `per_example`: one per element, or one per place of the first
/// dimensions. InvalidArgument if it does not fit.
Tensor fitted_weight(std::string_view op, const Tensor& sample_weight, const Tensor& per_example);

}  // namespace detail::inline rooms

}  // namespace gradus
