/// A call of least_squares() without the structure of its parameters, and its result: what the methods see.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>
#include "gradus/fitting/parameters.h"

namespace gradus {

enum class LeastSquaresMethod;
enum class LeastSquaresStatus;
enum class RobustLoss;

namespace detail::fitting {

/// Options without their structure; see LeastSquaresOptions.
struct LeastSquaresSettings {
  LeastSquaresMethod method;
  std::optional<double> ftol, xtol, gtol;
  std::optional<bool> jac_scale;
  RobustLoss loss;
  double f_scale;
  std::optional<int> max_nfev;
};
struct LeastSquaresProgress {
  const Vector& x;
  double cost;
  int nit, nfev;
};
struct CompiledResiduals;
std::shared_ptr<CompiledResiduals> compiled_residuals(FlatFunction f, std::string_view op, std::size_t max_bytes,
                                                      bool run_eagerly);

struct LeastSquaresProblem {
  const Parameters& parameters;
  std::shared_ptr<const CompiledResiduals> residuals;
  LeastSquaresSettings settings;
  Vector lower, upper, x_scale;                            // x_scale is empty if it is not given
  std::function<bool(const LeastSquaresProgress&)> stops;  // true: end here
};
struct LeastSquaresFit {
  Vector x, gradient;
  double cost, optimality;
  Tensor residuals, jacobian;
  std::vector<int> active;
  int iterations, evaluations, jacobians;
  LeastSquaresStatus status;
  std::vector<double> history;
};
LeastSquaresFit find_least_squares(LeastSquaresProblem problem);
Tensor covariance_of(const Tensor& jacobian, double cost, bool absolute_sigma);

}  // namespace detail::fitting
}  // namespace gradus
