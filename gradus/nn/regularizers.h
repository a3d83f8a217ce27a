/// Penalties on weights, to be added to a loss, and constraints, to be assigned after an update; by Keras's names.
///
///   Dense layer(10, linear, {.kernel_regularizer = regularizers::L2(1e-4)});  // fit adds it to the loss
///   loss = loss + regularizers::l2(layer.kernel(), 1e-4);                       // the same by hand
///   layer.kernel().assign(constraints::max_norm(layer.kernel(), 2));
#pragma once
#include <functional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// An option of layers: a function from what is penalized to a scalar, or nothing. fit and evaluate add it to the loss:
/// of each trainable variable once a step, of activities once a call, divided by their rows (axis 0), as Keras does.
class Regularizer {
 public:
  Regularizer() = default;
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, const Tensor&>
  Regularizer(F f) : f_(std::move(f)) {}
  Regularizer(const Regularizer&) = default;  // and no move: what is left would penalize nothing
  Regularizer& operator=(const Regularizer&) = default;
  explicit operator bool() const { return static_cast<bool>(f_); }
  /// InvalidArgument unless it makes a scalar.
  Tensor operator()(const Tensor& x) const;

 private:
  std::function<Tensor(const Tensor&)> f_;
};

namespace regularizers {
/// factor * sum(|x|), a scalar. Floats.
Tensor l1(const Tensor& x, double factor = 0.01);
/// factor * sum(x^2)
Tensor l2(const Tensor& x, double factor = 0.01);
Tensor l1_l2(const Tensor& x, double l1 = 0, double l2 = 0);
enum class OrthogonalMode { rows, columns };
/// factor * the mean of |cosine| between different rows (columns) of a matrix.
Tensor orthogonal(const Tensor& x, double factor = 0.01, OrthogonalMode mode = OrthogonalMode::rows);

// The same as options of layers.
Regularizer L1(double l1 = 0.01);
Regularizer L2(double l2 = 0.01);
Regularizer L1L2(double l1 = 0, double l2 = 0);
Regularizer OrthogonalRegularizer(double factor = 0.01, OrthogonalMode mode = OrthogonalMode::rows);
}  // namespace regularizers

namespace constraints {
/// Vectors along `axis` that are longer than max_value, scaled down to it.
Tensor max_norm(const Tensor& x, double max_value = 2, const std::vector<int>& axis = {0});
/// Lengths along `axis` moved into [min_value, max_value], by a share `rate` of the way.
Tensor min_max_norm(const Tensor& x, double min_value = 0, double max_value = 1, double rate = 1,
                    const std::vector<int>& axis = {0});
/// max(x, 0)
Tensor non_neg(const Tensor& x);
/// Vectors along `axis` divided by their lengths.
Tensor unit_norm(const Tensor& x, const std::vector<int>& axis = {0});
}  // namespace constraints

}  // namespace gradus
