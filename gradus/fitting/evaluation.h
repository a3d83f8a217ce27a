/// A user's function as the methods see it: numbers in, numbers out. Each kind of evaluation is one compiled function.
#pragma once
#include <array>
#include "gradus/fitting/parameters.h"
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"

namespace gradus::fitting {

/// A function of the vector of all parameters.
using FlatFunction = gradus::detail::TensorMap;

/// A scalar function: its values, gradients and products with its Hessian.
class Objective {
 public:
  /// `parameters` outlives it.
  Objective(FlatFunction f, const Parameters& parameters, bool run_eagerly);
  /// The value at x, and the gradient there. InvalidArgument unless the function gives one floating number.
  double evaluate(const Vector& x, Vector& gradient);
  /// The Hessian at x times v, forward over reverse.
  Vector hessian_product(const Vector& x, const Vector& v);
  /// InvalidArgument if the function does not use its parameters at all.
  void require_dependence(const Vector& x) const;

  const Parameters& parameters() const { return parameters_; }
  int evaluations() const { return evaluations_; }
  int products() const { return products_; }

 private:
  Tensor scalar_at(const Tensor& x) const;

  FlatFunction f_;
  const Parameters& parameters_;
  Function<std::function<std::array<Tensor, 2>(const Tensor&)>> value_and_gradient_;
  Function<std::function<Tensor(const Tensor&, const Tensor&)>> product_;
  int evaluations_ = 0, products_ = 0;
};

/// A function of any shape: residuals and their Jacobian.
class Residuals {
 public:
  Residuals(FlatFunction f, const Parameters& parameters, JacobianOptions jacobian, bool run_eagerly);
  /// The residuals as one vector. InvalidArgument unless they are floating, and as many as before.
  Vector evaluate(const Vector& x);
  /// [residuals, parameters].
  Matrix jacobian(const Vector& x);
  void require_dependence(const Vector& x) const;

  const Parameters& parameters() const { return parameters_; }
  const Shape& shape() const { return shape_; }  // of the residuals
  int evaluations() const { return evaluations_; }
  int jacobians() const { return jacobians_; }

 private:
  Tensor residuals_at(const Tensor& x) const;

  FlatFunction f_;
  const Parameters& parameters_;
  Function<std::function<Tensor(const Tensor&)>> values_, jacobian_;
  Shape shape_;
  int evaluations_ = 0, jacobians_ = 0;
};

}  // namespace gradus::fitting
