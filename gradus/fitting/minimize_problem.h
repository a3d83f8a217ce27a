/// A call of minimize() without the structure of its parameters, and its result: what the methods see.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>
#include "gradus/fitting/parameters.h"

namespace gradus {

enum class MinimizeMethod;
enum class MinimizeStatus;

namespace detail::fitting {

/// Options without their structure; see MinimizeOptions.
struct MinimizeSettings {
  MinimizeMethod method;
  std::optional<double> tol, gtol, ftol, xtol;
  std::optional<int> maxiter, maxfun, maxcor, maxls;
  std::optional<double> c1, c2;
};
struct MinimizeProgress {
  const Vector& x;
  double fun;
  int nit, nfev;
};
struct CompiledObjective;
std::shared_ptr<CompiledObjective> compiled_objective(FlatFunction f, std::string_view op, bool run_eagerly);

struct MinimizeProblem {
  const Parameters& parameters;
  std::shared_ptr<const CompiledObjective> objective;
  MinimizeSettings settings;
  bool has_bounds;
  Vector lower, upper;
  std::function<bool(const MinimizeProgress&)> stops;  // true: end here
};
struct Minimum {
  Vector x, gradient;
  double value;
  int iterations, evaluations, products;
  MinimizeStatus status;
  std::vector<double> history;
  Matrix inverse;
};
Minimum find_minimum(MinimizeProblem problem);
Tensor tensor_of(const Matrix& matrix);

}  // namespace detail::fitting
}  // namespace gradus
