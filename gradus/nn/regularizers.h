/// Regularizers: penalties on weights, to be added to a loss. Constraints: values to be assigned after an update. They
/// have Keras's names.
///
///   Dense layer(10, linear, {.kernel_regularizer = regularizers::l2(1e-4)});  // fit adds it to the loss
///   loss = loss + regularizers::l2(layer.kernel(), 1e-4);                       // the same by hand
///   layer.kernel().assign(constraints::max_norm(layer.kernel(), 2));
#pragma once
#include <functional>
#include <vector>
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// A penalty as an option of layers: a function from the penalized tensor to a scalar, or empty. fit and evaluate add
/// it to the loss: once per step for each trainable variable, once per call for activities, divided by their rows (axis
/// 0), as in Keras.
class Regularizer {
 public:
  Regularizer() = default;
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, const Tensor&>
  Regularizer(F f) : f_(std::move(f)) {}
  Regularizer(const char*) = delete;          // regularizers are functions: regularizers::l2(1e-4)
  Regularizer(const Regularizer&) = default;  // and no move: it would leave an empty penalty behind
  Regularizer& operator=(const Regularizer&) = default;
  /// True if there is a penalty.
  explicit operator bool() const { return static_cast<bool>(f_); }
  /// The penalty. InvalidArgument unless it is a scalar.
  Tensor operator()(const Tensor& x) const;

 private:
  std::function<Tensor(const Tensor&)> f_;
};

/// Both of Keras's spellings mean the same. Given a factor, a function makes an option of layers; given a tensor, it
/// computes the penalty.
namespace regularizers {
/// The vectors of a matrix that OrthogonalRegularizer compares.
enum class OrthogonalMode { rows, columns };

/// factor * sum(|x|), a scalar. Floats.
Regularizer L1(double factor = 0.01);
Tensor L1(const Tensor& x, double factor = 0.01);
/// factor * sum(x^2), a scalar. Floats.
Regularizer L2(double factor = 0.01);
Tensor L2(const Tensor& x, double factor = 0.01);
/// l1 * sum(|x|) + l2 * sum(x^2), a scalar. Floats.
Regularizer L1L2(double l1 = 0, double l2 = 0);
Tensor L1L2(const Tensor& x, double l1 = 0, double l2 = 0);
/// factor * the mean of |cosine| between different rows (columns) of a matrix.
Regularizer OrthogonalRegularizer(double factor = 0.01, OrthogonalMode mode = OrthogonalMode::rows);
Tensor OrthogonalRegularizer(const Tensor& x, double factor = 0.01, OrthogonalMode mode = OrthogonalMode::rows);

/// L1 under Keras's function name.
inline Regularizer l1(double factor = 0.01) { return L1(factor); }
inline Tensor l1(const Tensor& x, double factor = 0.01) { return L1(x, factor); }
/// L2 under Keras's function name.
inline Regularizer l2(double factor = 0.01) { return L2(factor); }
inline Tensor l2(const Tensor& x, double factor = 0.01) { return L2(x, factor); }
/// L1L2 under Keras's function name.
inline Regularizer l1_l2(double l1 = 0, double l2 = 0) { return L1L2(l1, l2); }
inline Tensor l1_l2(const Tensor& x, double l1 = 0, double l2 = 0) { return L1L2(x, l1, l2); }
/// OrthogonalRegularizer under Keras's function name.
inline Regularizer orthogonal(double factor = 0.01, OrthogonalMode mode = OrthogonalMode::rows) {
  return OrthogonalRegularizer(factor, mode);
}
inline Tensor orthogonal(const Tensor& x, double factor = 0.01, OrthogonalMode mode = OrthogonalMode::rows) {
  return OrthogonalRegularizer(x, factor, mode);
}
}  // namespace regularizers

namespace constraints {
/// Scales vectors along `axis` that are longer than max_value down to it.
Tensor max_norm(const Tensor& x, double max_value, const NamedAxes& named);
template <class = void> Tensor max_norm(const Tensor& x, double max_value = 2, const std::vector<int>& axis = {0}) {
  return max_norm(x, max_value, NamedAxes{axis});
}
/// Moves the lengths of vectors along `axis` towards [min_value, max_value], by a share `rate` of the distance.
Tensor min_max_norm(const Tensor& x, double min_value, double max_value, double rate, const NamedAxes& named);
template <class = void>
Tensor min_max_norm(const Tensor& x, double min_value = 0, double max_value = 1, double rate = 1,
                    const std::vector<int>& axis = {0}) {
  return min_max_norm(x, min_value, max_value, rate, NamedAxes{axis});
}
/// max(x, 0).
Tensor non_neg(const Tensor& x);
/// Divides vectors along `axis` by their lengths.
Tensor unit_norm(const Tensor& x, const NamedAxes& named);
template <class = void> Tensor unit_norm(const Tensor& x, const std::vector<int>& axis = {0}) {
  return unit_norm(x, NamedAxes{axis});
}
}  // namespace constraints

}  // namespace gradus
