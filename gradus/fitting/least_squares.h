/// least_squares: parameters that make residuals small, with the names, defaults and results of
/// scipy.optimize.least_squares. Residuals and their Jacobian, in forward or reverse mode by its shape, are compiled
/// functions.
///
///   const auto fit = least_squares([&](Tensor p) { return p[0] * exp(-p[1] * t) - y; }, constant({1.0, 1.0}, f64),
///                                  {.loss = RobustLoss::soft_l1});
///   fit.x, fit.covariance()
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "gradus/fitting/least_squares_problem.h"
#include "gradus/fitting/minimize.h"

namespace gradus {

/// Losses of least_squares, of z = (residual / f_scale)^2.
enum class RobustLoss {
  linear,   // z: ordinary least squares
  soft_l1,  // 2 (sqrt(1 + z) - 1): smooth absolute values
  huber,    // z up to 1, then 2 sqrt(z) - 1
  cauchy,   // ln(1 + z): far outliers hardly count
  arctan    // arctan(z): the loss of one residual has a bound
};

/// Methods of least_squares().
enum class LeastSquaresMethod {
  trf,     // trust region, reflected at bounds: the default
  dogbox,  // dogleg in a trust region that is a box
  lm       // Levenberg and Marquardt's, as MINPACK has it: linear loss, no bounds, no fewer residuals than parameters
};

/// The reason why least_squares() ended. The first four are a success.
enum class LeastSquaresStatus {
  small_gradient,   // the (scaled) gradient is within gtol
  small_reduction,  // the cost fell by less than ftol times itself, as the model predicted
  small_step,       // the step is within xtol of x
  small_both,       // small_reduction and small_step
  max_evaluations,  // max_nfev evaluations are done
  stopped           // the callback set `stop`
};
/// The status in words.
std::string text_of(LeastSquaresStatus status);

/// The state after an iteration, which a callback of least_squares() gets.
template <FitParameters X = Tensor> struct LeastSquaresStep {
  X x;          // parameters
  double cost;  // cost there
  int nit;      // iterations so far
  int nfev;     // evaluations of the residuals so far
  bool& stop;   // set it to end here
};

/// Options of least_squares().
template <FitParameters X = Tensor> struct LeastSquaresOptions {
  LeastSquaresMethod method = LeastSquaresMethod::trf;  // the way to the minimum
  std::optional<Bounds<X>> bounds = {};  // x0 has to lie within them; each lower one is below its upper one
  std::optional<double> ftol = 1e-8;     // relative reduction of the cost; empty: not tested
  std::optional<double> xtol = 1e-8;     // relative size of a step; empty: not tested
  std::optional<double> gtol = 1e-8;     // size of the gradient; empty: not tested
  std::optional<X> x_scale = {};         // characteristic size of each parameter, a scalar or its shape; 1
  std::optional<bool> jac_scale = {};    // sizes from the columns of the Jacobian instead; the default of lm
  RobustLoss loss = RobustLoss::linear;  // of each residual; not linear: outliers count less
  double f_scale = 1;                    // residuals that are no outliers are about this size; not for linear
  std::optional<int> max_nfev = {};      // evaluations of the residuals, at most: 100 for each parameter
  std::function<void(const LeastSquaresStep<X>&)> callback = {};  // after each iteration
  std::size_t max_bytes = 0;  // budget of the Jacobian, as JacobianOptions has it; 0: none
  bool run_eagerly = false;   // the function op by op, for a debugger
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("ftol xtol gtol"), Allowed::positive("f_scale max_nfev"),
                      Allowed::any("max_bytes")};
  }
};

/// The result of least_squares(), with the estimate of its uncertainty.
template <FitParameters X = Tensor> struct LeastSquaresResult {
  X x;                          // parameters of the least cost found
  double cost;                  // half the sum of squares, or of f_scale^2 rho((f / f_scale)^2)
  Tensor fun;                   // residuals there, in f64 and their shape
  Tensor jac;                   // Jacobian there, f64 [residuals, parameters]; a robust loss scales its rows
  X grad;                       // gradient of the cost
  double optimality;            // largest element of the (scaled) gradient
  X active_mask;                // integers: -1 at a lower bound, 1 at an upper one, else 0
  int nit;                      // iterations
  int nfev;                     // evaluations of the residuals
  int njev;                     // of the Jacobian
  LeastSquaresStatus status;    // reason of the end
  std::string message;          // the same in words
  bool success;                 // true if a tolerance was met
  std::vector<double> history;  // costs: of x0, then after each iteration

  /// The covariance of the parameters, f64 [parameters, parameters] in the order in which x has them: the inverse of
  /// J'J, times 2 cost / (residuals - parameters) unless the residuals are in units of their deviations
  /// (absolute_sigma), as of scipy.optimize.curve_fit. Infinite if the residuals do not determine the parameters, or
  /// if there are no more of them than parameters.
  Tensor covariance(bool absolute_sigma = false) const;
};

namespace detail {

template <class X> fitting::LeastSquaresSettings settings_of(const LeastSquaresOptions<X>& o) {
  return {o.method, o.ftol, o.xtol, o.gtol, o.jac_scale, o.loss, o.f_scale, o.max_nfev};
}

template <class X>
LeastSquaresResult<X> least_squares_flat(const fitting::Parameters& parameters, const X& structure,
                                         std::shared_ptr<const fitting::CompiledResiduals> residuals,
                                         const LeastSquaresOptions<X>& options) {
  check_options("least_squares", options);
  constexpr double infinity = Allowed::infinity;
  const auto as_x = [&](const fitting::Vector& x) { return fitting::with_tensors(structure, parameters.tensors(x)); };
  fitting::LeastSquaresProblem problem{parameters, std::move(residuals), settings_of(options), {}, {}, {}, {}};
  const Bounds<X> bounds = options.bounds.value_or(Bounds<X>());
  problem.lower = parameters.numbers(tensors_of_bound(bounds.lb), "the lower bound", -infinity);
  problem.upper = parameters.numbers(tensors_of_bound(bounds.ub), "the upper bound", infinity);
  if (options.x_scale) problem.x_scale = parameters.numbers(fitting::tensors_of(*options.x_scale), "x_scale", 1);
  if (options.callback)
    problem.stops = [&](const fitting::LeastSquaresProgress& at) {
      bool stop = false;
      options.callback(LeastSquaresStep<X>{as_x(at.x), at.cost, at.nit, at.nfev, stop});
      return stop;
    };
  const fitting::LeastSquaresFit found = fitting::find_least_squares(std::move(problem));
  const bool success = found.status <= LeastSquaresStatus::small_both;
  return {as_x(found.x),
          found.cost,
          found.residuals,
          found.jacobian,
          as_x(found.gradient),
          found.optimality,
          fitting::with_tensors(structure, parameters.integers(found.active)),
          found.iterations,
          found.evaluations,
          found.jacobians,
          found.status,
          text_of(found.status),
          success,
          found.history};
}

}  // namespace detail

template <FitParameters X> Tensor LeastSquaresResult<X>::covariance(bool absolute_sigma) const {
  return detail::fitting::covariance_of(jac, cost, absolute_sigma);
}

/// Parameters near x0 with the least cost: half the sum of the squares of f's residuals, or of a robust loss of them. f
/// takes parameters of x0's structure and gives floating residuals of any shape, the same at each call. Integers in x0
/// become f64, as in SciPy.
///
/// InvalidArgument: residuals that are not floating, not finite at x0, or do not depend on x; x0 outside of the bounds,
/// bounds that meet, cross or have another shape; lm with bounds, a robust loss or fewer residuals than parameters;
/// tolerances that are all empty or below 2.2e-16 (with lm, any of them); both x_scale and jac_scale; a call within
/// `function`. If residuals are not finite later, steps are shortened. Exceptions of f and of the callback are passed
/// on.
template <class F, FitParameters X>
  requires std::is_invocable_r_v<Tensor, F&, const X&>
LeastSquaresResult<X> least_squares(F&& f, const X& x0,
                                    const std::type_identity_t<LeastSquaresOptions<X>>& options = {}) {
  const detail::fitting::Parameters parameters("least_squares", detail::fitting::tensors_of(x0));
  const auto make = [&](auto& function) {
    const auto of_flat = [&function, x0, parameters](const Tensor& flat) -> Tensor {
      return function(detail::fitting::with_tensors(x0, parameters.split(flat)));
    };
    return detail::fitting::compiled_residuals(of_flat, parameters.op(), options.max_bytes, options.run_eagerly);
  };
  const std::string key = text(options.run_eagerly, ' ', options.max_bytes);
  return detail::least_squares_flat(parameters, x0, detail::kept_for(f, x0, parameters, key, make), options);
}

/// The same over Variables, such as a model's, which hold the fitted values afterwards: `residuals` takes no argument.
/// In the result, x, grad and active_mask have a tensor for each Variable. An error leaves the Variables as they were.
template <class F>
  requires std::is_invocable_r_v<Tensor, F&>
LeastSquaresResult<Tensors> least_squares(F&& residuals, const Variables& variables,
                                          const LeastSquaresOptions<Tensors>& options = {}) {
  const Tensors x0 = detail::fitting::values_of("least_squares", variables);
  const detail::fitting::Parameters parameters("least_squares", x0);
  detail::fitting::RestoredVariables restored(variables, x0);
  const auto of_flat = [&](const Tensor& flat) -> Tensor {
    detail::fitting::assign_all(variables, parameters, flat);
    return residuals();
  };
  const auto compiled =
      detail::fitting::compiled_residuals(of_flat, parameters.op(), options.max_bytes, options.run_eagerly);
  LeastSquaresResult<Tensors> result = detail::least_squares_flat(parameters, x0, compiled, options);
  for (std::size_t i = 0; i < variables.size(); ++i) variables[i].assign(result.x[i]);
  restored.keep();
  return result;
}

}  // namespace gradus
