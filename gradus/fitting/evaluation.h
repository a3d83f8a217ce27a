/// A user's function as the methods see it: numbers in, numbers out. Each kind of evaluation is one compiled function.
#pragma once
#include <array>
#include "gradus/fitting/parameters.h"
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"

namespace gradus::detail::fitting {

/// The compiled functions of a scalar function.
struct CompiledObjective {
  CompiledObjective(FlatFunction function, std::string_view name, bool run_eagerly);
  CompiledObjective(const CompiledObjective&) = delete;
  Tensor scalar_at(const Tensor& x) const;

  const FlatFunction f;
  const std::string op;  // opens errors
  const Function<std::function<std::array<Tensor, 2>(const Tensor&)>> value_and_gradient;
  const Function<std::function<Tensor(const Tensor&, const Tensor&)>> product;
};

/// A scalar function in one run: its values, gradients and products with its Hessian.
class Objective {
 public:
  /// `parameters` outlives it.
  Objective(std::shared_ptr<const CompiledObjective> compiled, const Parameters& parameters)
      : compiled_(std::move(compiled)), parameters_(parameters) {}
  /// The value at x, and the gradient there. InvalidArgument unless the function gives one floating number.
  double evaluate(const Vector& x, Vector& gradient);
  /// The Hessian at x times v, forward over reverse.
  Vector hessian_product(const Vector& x, const Vector& v);
  /// InvalidArgument if the function does not use its parameters at all.
  void require_dependence(const Vector& x) const;

  int evaluations() const { return evaluations_; }
  int products() const { return products_; }

 private:
  const std::shared_ptr<const CompiledObjective> compiled_;
  const Parameters& parameters_;
  int evaluations_ = 0, products_ = 0;
};

/// The compiled functions of a function of any shape.
struct CompiledResiduals {
  CompiledResiduals(FlatFunction function, std::string_view name, JacobianOptions options, bool run_eagerly);
  CompiledResiduals(const CompiledResiduals&) = delete;
  Tensor residuals_at(const Tensor& x) const;

  const FlatFunction f;
  const std::string op;  // opens errors
  const Function<std::function<Tensor(const Tensor&)>> values, jacobian;
};

/// A function of any shape in one run: residuals and their Jacobian.
class Residuals {
 public:
  Residuals(std::shared_ptr<const CompiledResiduals> compiled, const Parameters& parameters)
      : compiled_(std::move(compiled)), parameters_(parameters) {}
  /// The residuals as one vector. InvalidArgument unless they are floating, and as many as before.
  Vector evaluate(const Vector& x);
  /// [residuals, parameters].
  Matrix jacobian(const Vector& x);
  void require_dependence(const Vector& x) const;

  const Shape& shape() const { return shape_; }  // of the residuals
  int evaluations() const { return evaluations_; }
  int jacobians() const { return jacobians_; }

 private:
  const std::shared_ptr<const CompiledResiduals> compiled_;
  const Parameters& parameters_;
  Shape shape_;
  int evaluations_ = 0, jacobians_ = 0;
};

}  // namespace gradus::detail::fitting
