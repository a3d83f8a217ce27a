/// Initializers: functions from a shape to first values, f32. As in Keras, fan_in is the product of all dimensions
/// except the last, and fan_out that of all except the second to last.
#pragma once
#include <functional>
#include "gradus/base/error.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// A function from a shape to first values of a variable.
class Initializer {
 public:
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, const Shape&>
  Initializer(F f) : f_(std::move(f)) {}
  Initializer(const char*) = delete;          // initializers are functions: initializers::he_normal
  Initializer(const Initializer&) = default;  // and no move: it would leave an empty function behind
  Initializer& operator=(const Initializer&) = default;
  /// The first values. InvalidArgument for an empty function.
  Tensor operator()(const Shape& shape) const {
    require(static_cast<bool>(f_), "this initializer is an empty function");
    return f_(shape);
  }

 private:
  std::function<Tensor(const Shape&)> f_;
};

namespace initializers {
Tensor glorot_uniform(const Shape& shape);  // uniform within sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)
Tensor glorot_normal(const Shape& shape);   // truncated normal of variance 2 / (fan_in + fan_out)
Tensor he_uniform(const Shape& shape);      // uniform within sqrt(6 / fan_in) (He et al. 2015)
Tensor he_normal(const Shape& shape);       // truncated normal of variance 2 / fan_in
Tensor lecun_uniform(const Shape& shape);   // uniform within sqrt(3 / fan_in)
Tensor lecun_normal(const Shape& shape);    // truncated normal of variance 1 / fan_in
/// A matrix with a column for each index of the last dimension and a row for each index of the others. Its columns are
/// orthonormal or, if there are more columns than rows, its rows: the orthogonal factor of a normal matrix (Saxe et al.
/// 2014). InvalidArgument below two dimensions, and without elements.
Tensor orthogonal(const Shape& shape);
/// Zeros.
Tensor zeros(const Shape& shape);
/// Ones.
Tensor ones(const Shape& shape);
/// `value` everywhere.
Initializer constant(double value);
/// Normal numbers with mean 0 and this standard deviation.
Initializer normal(double stddev);
Initializer uniform(double limit);  // uniform in [-limit, limit)
}  // namespace initializers

}  // namespace gradus
