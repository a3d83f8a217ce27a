/// Further losses of classes, as in Keras: focal losses, overlaps of masks, and alignments of sequences. The functions
/// give one number per example, the classes of the same name make a Loss of them.
#pragma once
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/losses.h"

namespace gradus {

struct BinaryFocalOptions {
  bool apply_class_balancing = false;  // weighs y = 1 by alpha, y = 0 by 1 - alpha
  double alpha = 0.25, gamma = 2, label_smoothing = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::share("alpha label_smoothing"), Allowed::not_negative("gamma")};
  }
};
struct CategoricalFocalOptions {
  double alpha = 0.25, gamma = 2, label_smoothing = 0;
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("alpha gamma"), Allowed::share("label_smoothing")};
  }
};
/// Which axes one overlap is taken over; none: all of them.
struct OverlapOptions {
  std::vector<int> axis = {};
  static constexpr auto ranges() { return std::array{Allowed::any("axis")}; }
};
struct TverskyOptions {
  double alpha = 0.5, beta = 0.5;
  std::vector<int> axis = {};
  static constexpr auto ranges() { return std::array{Allowed::not_negative("alpha beta"), Allowed::any("axis")}; }
};
struct CircleOptions {
  Tensor ref_labels = {}, ref_embeddings = {};  // empty: y and the prediction themselves
  bool remove_diagonal = true;                  // an example is no reference of itself
  double gamma = 80, margin = 0.4;
  static constexpr auto ranges() { return std::array{Allowed::positive("gamma"), Allowed::finite("margin")}; }
};
struct GeneralizedOptions {
  double q = 0.5;  // above 0: towards 0 crossentropy, towards 1 mean absolute error
  static constexpr auto ranges() { return std::array{Allowed::positive("q")}; }
};
struct CtcOptions {
  std::int64_t mask_index = 0;  // the class of the blank; in y it fills up rows
  static constexpr auto ranges() { return std::array{Allowed::not_negative("mask_index")}; }
};

namespace detail {
Tensor binary_focal_crossentropy(const Tensor& y, const Tensor& prediction, bool logits, BinaryFocalOptions options);
Tensor categorical_focal_crossentropy(const Tensor& y, const Tensor& prediction, bool logits,
                                      CategoricalFocalOptions options);
}  // namespace detail

/// (1 - q)^gamma times the binary crossentropy, where q is the probability given to what y says (Lin et al. 2017); the
/// mean over the last axis. y is of the prediction's shape.
template <PredictionForm P>
Tensor binary_focal_crossentropy(const Tensor& y, const Tensor& prediction, P, BinaryFocalOptions options = {}) {
  return detail::binary_focal_crossentropy(y, prediction, std::same_as<P, from_logits_t>, options);
}
/// -sum(alpha (1 - p)^gamma y log(p)) over the last axis; y is of the prediction's shape.
template <PredictionForm P>
Tensor categorical_focal_crossentropy(const Tensor& y, const Tensor& prediction, P,
                                      CategoricalFocalOptions options = {}) {
  return detail::categorical_focal_crossentropy(y, prediction, std::same_as<P, from_logits_t>, options);
}
/// 1 - 2 sum(y p) / (sum(y) + sum(p) + 1e-7) over the axes.
Tensor dice(const Tensor& y, const Tensor& prediction, OverlapOptions options = {});
/// 1 - s / (s + alpha sum((1 - y) p) + beta sum(y (1 - p)) + 1e-7) with s = sum(y p), over the axes (Salehi et al.
/// 2017).
Tensor tversky(const Tensor& y, const Tensor& prediction, TverskyOptions options = {});
/// Sun et al. 2020: y holds integer labels [batch], the prediction embeddings [batch, n] of length 1, which are
/// compared with those of the references. Examples of weight 0 are no references either.
Tensor circle(const Tensor& y, const Tensor& prediction, CircleOptions options = {});
/// (1 - p[y]^q) / q of probabilities (Zhang and Sabuncu 2018); y holds classes, one for each row of the prediction.
Tensor categorical_generalized_cross_entropy(const Tensor& y, const Tensor& prediction,
                                             GeneralizedOptions options = {});
/// -log of the probability that the logits [batch, time, classes] give to the labels y, integers [batch, length], under
/// all alignments (Graves et al. 2006): [batch]. Infinite where a row of labels does not fit into the time.
Tensor ctc(const Tensor& y, const Tensor& prediction, CtcOptions options = {});

struct BinaryFocalCrossentropy : LossFunction {
  BinaryFocalCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit BinaryFocalCrossentropy(P, BinaryFocalOptions options = {})
      : BinaryFocalCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  BinaryFocalCrossentropy(bool logits, BinaryFocalOptions options);
};
struct CategoricalFocalCrossentropy : LossFunction {
  CategoricalFocalCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit CategoricalFocalCrossentropy(P, CategoricalFocalOptions options = {})
      : CategoricalFocalCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  CategoricalFocalCrossentropy(bool logits, CategoricalFocalOptions options);
};
struct Dice : LossFunction {
  Dice();
  explicit Dice(OverlapOptions options);
};
struct Tversky : LossFunction {
  Tversky();
  explicit Tversky(TverskyOptions options);
};
struct Circle : LossFunction {
  Circle();
  explicit Circle(CircleOptions options);
};
struct CategoricalGeneralizedCrossEntropy : LossFunction {
  CategoricalGeneralizedCrossEntropy();
  explicit CategoricalGeneralizedCrossEntropy(GeneralizedOptions options);
};
struct CTC : LossFunction {
  CTC();
  explicit CTC(CtcOptions options);
};

}  // namespace gradus
