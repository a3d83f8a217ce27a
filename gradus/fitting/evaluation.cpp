/// The compiled functions. Their results are f64, whatever the parameters are, so that the methods read them in place.
/// No tape is used: under one, a Variable that was assigned is a leaf, and here it stands for a part of the parameters.
#include "gradus/fitting/evaluation.h"
#include "gradus/autodiff/vjp.h"
#include "gradus/function/tiered_program.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::detail::fitting {
namespace {

void require_use(std::string_view op, const FlatFunction& f, const Tensor& x) {
  const Tensor at = as_argument(x), target = reduce_sum(f(at));
  const Stops stops = [first = at.node()->sequence](const Node& node) { return node.sequence < first; };
  require(vjp(target, {&at, 1}, {}, stops)[0].defined(), op,
          ": the function does not depend on its parameters in a way that has derivatives");
}

FunctionOptions options_of(std::string_view op, std::string_view what, bool run_eagerly) {
  FunctionOptions options;
  options.name = text(op, ": ", what);
  options.run_eagerly = run_eagerly;
  return options;
}

}  // namespace

CompiledObjective::CompiledObjective(FlatFunction function, std::string_view name, bool run_eagerly)
    : f(std::move(function)),
      op(name),
      value_and_gradient(
          [this](const Tensor& x) {
            const auto [value, pullback] = gradus::vjp([&](Tensor at) { return scalar_at(at); }, x);
            return std::array{cast(value, f64), cast(pullback(ones_like(value)), f64)};
          },
          options_of(op, "value and gradient", run_eagerly)),
      product(
          [this](const Tensor& x, const Tensor& v) {
            return cast(gradus::hessian_vector_product([&](Tensor at) { return scalar_at(at); }, x, v), f64);
          },
          options_of(op, "product with the Hessian", run_eagerly)) {}

Tensor CompiledObjective::scalar_at(const Tensor& x) const {
  const Tensor y = f(x);
  require(y.defined(), op, ": the objective gives an empty tensor");
  require(
      y.shape().size() == 1 && is_floating(y.dtype()), op, ": the objective gives ", y.spec(),
      "; expected one floating number: reduce it with reduce_sum or reduce_mean, or give residuals to least_squares");
  return reshape(y, {});
}

std::shared_ptr<CompiledObjective> compiled_objective(FlatFunction f, std::string_view op, bool run_eagerly) {
  return std::make_shared<CompiledObjective>(std::move(f), op, run_eagerly);
}

double Objective::evaluate(const Vector& x, Vector& gradient) {
  ++evaluations_;
  const PatientTiers patience;
  const auto [value, slope] = compiled_->value_and_gradient(parameters_.flat(x));
  gradient = slope.to_vector<double>();
  return value.item();
}

Vector Objective::hessian_product(const Vector& x, const Vector& v) {
  ++products_;
  const PatientTiers patience;
  const Tensor along = compiled_->product(parameters_.flat(x), parameters_.flat(v));
  return along.to_vector<double>();
}

void Objective::require_dependence(const Vector& x) const {
  require_use(parameters_.op(), [this](const Tensor& at) { return compiled_->scalar_at(at); }, parameters_.flat(x));
}

CompiledResiduals::CompiledResiduals(FlatFunction function, std::string_view name, JacobianOptions options,
                                     bool run_eagerly)
    : f(std::move(function)),
      op(name),
      values([this](const Tensor& x) { return cast(residuals_at(x), f64); }, options_of(op, "residuals", run_eagerly)),
      jacobian(
          [this, options](const Tensor& x) {
            const auto flat = [&](Tensor at) { return reshape(residuals_at(at), {-1}); };
            return cast(gradus::jacobian(flat, x, options), f64);
          },
          options_of(op, "Jacobian", run_eagerly)) {}

Tensor CompiledResiduals::residuals_at(const Tensor& x) const {
  const Tensor y = f(x);
  require(y.defined(), op, ": the function gives an empty tensor of residuals");
  require(is_floating(y.dtype()) && y.shape().size() != 0, op, ": the function gives ", y.spec(),
          "; expected floating residuals");
  return y;
}

std::shared_ptr<CompiledResiduals> compiled_residuals(FlatFunction f, std::string_view op, std::size_t max_bytes,
                                                      bool run_eagerly) {
  return std::make_shared<CompiledResiduals>(std::move(f), op, JacobianOptions{.max_bytes = max_bytes}, run_eagerly);
}

Vector Residuals::evaluate(const Vector& x) {
  const PatientTiers patience;
  const Tensor y = compiled_->values(parameters_.flat(x));
  require(evaluations_ == 0 || y.shape() == shape_, parameters_.op(), ": the function gave residuals ", shape_,
          " before, now ", y.shape());
  shape_ = y.shape();
  ++evaluations_;
  return y.to_vector<double>();
}

Matrix Residuals::jacobian(const Vector& x) {
  ++jacobians_;
  const PatientTiers patience;
  const Tensor rows = compiled_->jacobian(parameters_.flat(x));
  Matrix result;
  result.rows = static_cast<std::size_t>(shape_.size());
  result.columns = x.size();
  result.values = rows.to_vector<double>();
  return result;
}

void Residuals::require_dependence(const Vector& x) const {
  require_use(parameters_.op(), [this](const Tensor& at) { return compiled_->residuals_at(at); }, parameters_.flat(x));
}

}  // namespace gradus::detail::fitting
