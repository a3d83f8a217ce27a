/// Losses of numbers, margins and rates, as in Keras. The functions give one number per example; the classes of the
/// same name make a Loss of them. y has the prediction's shape (InvalidArgument otherwise, never a broadcast). Integers
/// and booleans are cast to the prediction's dtype. Unless a function says otherwise, it takes the mean over the last
/// axis.
#pragma once
#include "gradus/base/ranges.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// The Loss of any function that gives one number per example: PerExampleLoss(mean_absolute_error).
struct PerExampleLoss : LossFunction {
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, Tensor, Tensor>
  explicit PerExampleLoss(F per_example)
      : LossFunction(
            [f = std::move(per_example)](const Tensor& y, const Tensor& prediction) { return f(y, prediction); }) {}
};

/// 100 |y - p| / max(|y|, 1e-7).
Tensor mean_absolute_percentage_error(const Tensor& y, const Tensor& prediction);
/// (log(1 + y) - log(1 + p))^2, with both at least 1e-7.
Tensor mean_squared_logarithmic_error(const Tensor& y, const Tensor& prediction);
/// log(cosh(p - y)), without overflow.
Tensor log_cosh(const Tensor& y, const Tensor& prediction);
/// e^2 / 2 for |e| <= delta, beyond delta (|e| - delta / 2) (Huber 1964).
Tensor huber(const Tensor& y, const Tensor& prediction, HuberOptions options = {});
/// max(1 - y p, 0). y is -1 or 1; if all are 0 or 1, 0 counts as -1.
Tensor hinge(const Tensor& y, const Tensor& prediction);
/// The square of hinge, max(1 - y p, 0)^2, with the same y.
Tensor squared_hinge(const Tensor& y, const Tensor& prediction);
/// max(1 + max((1 - y) p) - sum(y p), 0), over the last axis.
Tensor categorical_hinge(const Tensor& y, const Tensor& prediction);
/// Kullback-Leibler divergence sum(y log(y / p)) over the last axis, with both clipped to [1e-7, 1].
Tensor kl_divergence(const Tensor& y, const Tensor& prediction);
/// p - y log(p + 1e-7).
Tensor poisson(const Tensor& y, const Tensor& prediction);
/// -sum(y p) along `axis`, with both normalized to length 1; 0 for a vector of zeros.
Tensor cosine_similarity(const Tensor& y, const Tensor& prediction, int axis = -1);
inline Tensor cosine_similarity(const Tensor& y, const Tensor& prediction, NamedAxis named) {
  return cosine_similarity(y, prediction, named.axis);
}

/// The Loss of mean_absolute_percentage_error.
struct MeanAbsolutePercentageError : LossFunction {
  MeanAbsolutePercentageError();
};
/// The Loss of mean_squared_logarithmic_error.
struct MeanSquaredLogarithmicError : LossFunction {
  MeanSquaredLogarithmicError();
};
/// The Loss of log_cosh.
struct LogCosh : LossFunction {
  LogCosh();
};
/// The Loss of hinge.
struct Hinge : LossFunction {
  Hinge();
};
/// The Loss of squared_hinge.
struct SquaredHinge : LossFunction {
  SquaredHinge();
};
/// The Loss of categorical_hinge.
struct CategoricalHinge : LossFunction {
  CategoricalHinge();
};
/// The Loss of kl_divergence.
struct KLDivergence : LossFunction {
  KLDivergence();
};
/// The Loss of poisson.
struct Poisson : LossFunction {
  Poisson();
};
/// Options of CosineSimilarity.
struct CosineSimilarityOptions {
  int axis = -1;  // axis of the vectors
  static constexpr auto ranges() { return std::array{Allowed::any("axis")}; }
};
/// The Loss of cosine_similarity.
struct CosineSimilarity : LossFunction {
  CosineSimilarity();
  explicit CosineSimilarity(CosineSimilarityOptions options);
};

}  // namespace gradus
