/// Further classification losses, as in Keras: focal losses, overlaps of masks, and alignments of sequences. The
/// functions give one number per example; the classes of the same name make a Loss of them.
#pragma once
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/losses.h"

namespace gradus {

/// Options of binary_focal_crossentropy.
struct BinaryFocalOptions {
  bool apply_class_balancing = false;                   // weights y = 1 by alpha, y = 0 by 1 - alpha
  double alpha = 0.25, gamma = 2, label_smoothing = 0;  // weight, exponent, and share of y that is moved to 1/2
  static constexpr auto ranges() {
    return std::array{Allowed::share("alpha label_smoothing"), Allowed::not_negative("gamma")};
  }
};
/// Options of categorical_focal_crossentropy.
struct CategoricalFocalOptions {
  double alpha = 0.25, gamma = 2, label_smoothing = 0;  // weight, exponent, smoothing of y
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("alpha gamma"), Allowed::share("label_smoothing")};
  }
};
/// Options of dice: the axes of one overlap; none: all of them.
struct OverlapOptions {
  std::vector<int> axis = {};  // none: all
  static constexpr auto ranges() { return std::array{Allowed::any("axis")}; }
};
/// Options of tversky.
struct TverskyOptions {
  double alpha = 0.5, beta = 0.5;  // weights of false positives and of false negatives
  std::vector<int> axis = {};      // axes of one overlap; none: all
  static constexpr auto ranges() { return std::array{Allowed::not_negative("alpha beta"), Allowed::any("axis")}; }
};
/// Options of circle.
struct CircleOptions {
  Tensor ref_labels = {}, ref_embeddings = {};  // references; by default y and the prediction themselves
  bool remove_diagonal = true;                  // an example is no reference for itself
  double gamma = 80, margin = 0.4;              // scale, and relaxation of the optima
  static constexpr auto ranges() { return std::array{Allowed::positive("gamma"), Allowed::finite("margin")}; }
};
/// Options of categorical_generalized_cross_entropy.
struct GeneralizedOptions {
  double q = 0.5;  // above 0; towards 0 crossentropy, towards 1 mean absolute error
  static constexpr auto ranges() { return std::array{Allowed::positive("q")}; }
};
/// Options of ctc.
struct CtcOptions {
  std::int64_t mask_index = 0;  // the class of the blank, which pads rows of y
  Tensor mask = {};             // bool [batch, time]: the steps of the logits that count; empty: that of the prediction
  static constexpr auto ranges() { return std::array{Allowed::not_negative("mask_index")}; }
};

namespace detail {
Tensor binary_focal_crossentropy(const Tensor& y, const Tensor& prediction, bool logits, BinaryFocalOptions options);
Tensor categorical_focal_crossentropy(const Tensor& y, const Tensor& prediction, bool logits,
                                      CategoricalFocalOptions options);
}  // namespace detail

/// Binary focal crossentropy: (1 - q)^gamma times the binary crossentropy, with q the probability given to the truth y
/// (Lin et al. 2017). The mean over the last axis. y has the prediction's shape.
template <PredictionForm P>
Tensor binary_focal_crossentropy(const Tensor& y, const Tensor& prediction, P, BinaryFocalOptions options = {}) {
  return detail::binary_focal_crossentropy(y, prediction, std::same_as<P, from_logits_t>, options);
}
/// Categorical focal crossentropy: -sum(alpha (1 - p)^gamma y log(p)) over the last axis. y has the prediction's shape.
template <PredictionForm P>
Tensor categorical_focal_crossentropy(const Tensor& y, const Tensor& prediction, P,
                                      CategoricalFocalOptions options = {}) {
  return detail::categorical_focal_crossentropy(y, prediction, std::same_as<P, from_logits_t>, options);
}
/// Dice loss: 1 - 2 sum(y p) / (sum(y) + sum(p) + 1e-7) over the axes.
Tensor dice(const Tensor& y, const Tensor& prediction, OverlapOptions options = {});
/// Tversky loss: 1 - s / (s + alpha sum((1 - y) p) + beta sum(y (1 - p)) + 1e-7) with s = sum(y p), over the axes
/// (Salehi et al. 2017).
Tensor tversky(const Tensor& y, const Tensor& prediction, TverskyOptions options = {});
/// Circle loss (Sun et al. 2020). y holds integer labels [batch], the prediction embeddings [batch, n] of length 1,
/// which are compared with those of the references. Examples of weight 0 are no references, either.
Tensor circle(const Tensor& y, const Tensor& prediction, CircleOptions options = {});
/// Generalized crossentropy: (1 - p[y]^q) / q of probabilities (Zhang and Sabuncu 2018). y holds classes, one per row
/// of the prediction.
Tensor categorical_generalized_cross_entropy(const Tensor& y, const Tensor& prediction,
                                             GeneralizedOptions options = {});
/// Connectionist temporal classification: -log of the probability that the logits [batch, time, classes] give to the
/// labels y, integers [batch, length], under all alignments (Graves et al. 2006): [batch]. Steps that a mask of the
/// prediction leaves out do not exist, so a mask gives each row its own number of steps. Infinite if a row of labels
/// does not fit into the time.
Tensor ctc(const Tensor& y, const Tensor& prediction, CtcOptions options = {});

/// The Loss of binary_focal_crossentropy.
struct BinaryFocalCrossentropy : LossFunction {
  BinaryFocalCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit BinaryFocalCrossentropy(P, BinaryFocalOptions options = {})
      : BinaryFocalCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  BinaryFocalCrossentropy(bool logits, BinaryFocalOptions options);
};
/// The Loss of categorical_focal_crossentropy.
struct CategoricalFocalCrossentropy : LossFunction {
  CategoricalFocalCrossentropy() = delete;  // from_logits or from_probabilities?
  template <PredictionForm P>
  explicit CategoricalFocalCrossentropy(P, CategoricalFocalOptions options = {})
      : CategoricalFocalCrossentropy(std::same_as<P, from_logits_t>, options) {}

 private:
  CategoricalFocalCrossentropy(bool logits, CategoricalFocalOptions options);
};
/// The Loss of dice.
struct Dice : LossFunction {
  Dice();
  explicit Dice(OverlapOptions options);
};
/// The Loss of tversky.
struct Tversky : LossFunction {
  Tversky();
  explicit Tversky(TverskyOptions options);
};
/// The Loss of circle.
struct Circle : LossFunction {
  Circle();
  explicit Circle(CircleOptions options);
};
/// The Loss of categorical_generalized_cross_entropy.
struct CategoricalGeneralizedCrossEntropy : LossFunction {
  CategoricalGeneralizedCrossEntropy();
  explicit CategoricalGeneralizedCrossEntropy(GeneralizedOptions options);
};
/// The Loss of ctc. It uses the mask of each prediction; a row whose steps are all masked is left out. InvalidArgument
/// if the option `mask` is set.
struct CTC : LossFunction {
  CTC();
  explicit CTC(CtcOptions options);
};

}  // namespace gradus
