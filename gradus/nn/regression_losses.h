/// Losses of numbers, margins and rates, as in Keras. The functions give one number per example; the classes of the
/// same name make a Loss of them. y is of the prediction's shape (InvalidArgument otherwise, never a broadcast);
/// integers and booleans are cast to the prediction's dtype. Unless said otherwise: the mean over the last axis.
#pragma once
#include "gradus/base/ranges.h"
#include "gradus/nn/losses.h"

namespace gradus {

/// A Loss of any function that gives one number per example: PerExampleLoss(mean_absolute_error).
struct PerExampleLoss : LossFunction {
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, Tensor, Tensor>
  explicit PerExampleLoss(F per_example)
      : LossFunction(
            [f = std::move(per_example)](const Tensor& y, const Tensor& prediction) { return f(y, prediction); }) {}
};

/// 100 |y - p| / max(|y|, 1e-7)
Tensor mean_absolute_percentage_error(const Tensor& y, const Tensor& prediction);
/// (log(1 + y) - log(1 + p))^2, both counted as at least 1e-7.
Tensor mean_squared_logarithmic_error(const Tensor& y, const Tensor& prediction);
/// log(cosh(p - y)), without overflow.
Tensor log_cosh(const Tensor& y, const Tensor& prediction);
/// Within delta e^2 / 2, beyond delta (|e| - delta / 2) (Huber 1964).
Tensor huber(const Tensor& y, const Tensor& prediction, HuberOptions options = {});
/// max(1 - y p, 0), and its square. y is -1 or 1; where all are 0 or 1, 0 counts as -1.
Tensor hinge(const Tensor& y, const Tensor& prediction);
Tensor squared_hinge(const Tensor& y, const Tensor& prediction);
/// max(1 + max((1 - y) p) - sum(y p), 0), over the last axis.
Tensor categorical_hinge(const Tensor& y, const Tensor& prediction);
/// sum(y log(y / p)) over the last axis, both within 1e-7 and 1.
Tensor kl_divergence(const Tensor& y, const Tensor& prediction);
/// p - y log(p + 1e-7)
Tensor poisson(const Tensor& y, const Tensor& prediction);
/// -sum(y p) along `axis` of both normalised to length 1; 0 of a vector of zeros.
Tensor cosine_similarity(const Tensor& y, const Tensor& prediction, int axis = -1);

struct MeanAbsolutePercentageError : LossFunction {
  MeanAbsolutePercentageError();
};
struct MeanSquaredLogarithmicError : LossFunction {
  MeanSquaredLogarithmicError();
};
struct LogCosh : LossFunction {
  LogCosh();
};
struct Hinge : LossFunction {
  Hinge();
};
struct SquaredHinge : LossFunction {
  SquaredHinge();
};
struct CategoricalHinge : LossFunction {
  CategoricalHinge();
};
struct KLDivergence : LossFunction {
  KLDivergence();
};
struct Poisson : LossFunction {
  Poisson();
};
struct CosineSimilarityOptions {
  int axis = -1;
  static constexpr auto ranges() { return std::array{Allowed::any("axis")}; }
};
struct CosineSimilarity : LossFunction {
  CosineSimilarity();
  explicit CosineSimilarity(CosineSimilarityOptions options);
};

}  // namespace gradus
