/// minimize: the minimum of a function by its derivatives, with the names, defaults and results of
/// scipy.optimize.minimize. Values, gradients and products with the Hessian are compiled functions; the methods work in
/// double precision, whatever the parameters are.
///
///   const auto result = minimize([](Tensor x) { return rosenbrock(x); }, constant({-1.2, 1.0}, f64));
///   const auto fitted = minimize([&] { return loss(y, model(x)); }, model.trainable_variables());
///
/// The function has to be deterministic: no dropout, no batches that change. f64 parameters reach the tolerances of the
/// defaults; with f32, rounding limits the value to a relative precision of about 1e-7, and a search may end with
/// precision_loss there.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/fitting/minimize_problem.h"
#include "gradus/fitting/parameters.h"
#include "gradus/fitting/repeated.h"

namespace gradus {

/// Parameters that can be fitted: a Tensor; arrays, pairs, tuples, vectors, maps by std::string and plain structs of
/// Tensors, nested at will. Integers, bools and enums in them keep their values.
template <class X>
concept FitParameters = detail::FunctionArgument<X> && std::same_as<detail::traced_t<X>, X> && !std::is_arithmetic_v<X>;

/// Methods of minimize(). automatic: l_bfgs_b with bounds, else bfgs, as in SciPy.
enum class MinimizeMethod { automatic, bfgs, l_bfgs_b, newton_cg };

/// The reason why minimize() ended. The first three are a success.
enum class MinimizeStatus {
  small_gradient,         // the (projected) gradient is within gtol
  small_reduction,        // l_bfgs_b: the last iteration gained less than ftol of the value
  small_step,             // newton_cg: the mean change of a parameter is within xtol
  max_iterations,         // maxiter iterations are done
  max_evaluations,        // l_bfgs_b: more than maxfun evaluations
  precision_loss,         // no step along the last direction gives a lower value, because of rounding or a jump of f
  not_positive_definite,  // newton_cg: conjugate gradients do not converge
  stopped                 // the callback set `stop`
};
/// The status in words.
std::string text_of(MinimizeStatus status);

/// Lower and upper bounds of parameters, in their structure: tensors of their shapes, or scalars for all elements of a
/// tensor. An empty tensor, and infinities, are no bound.
template <FitParameters X = Tensor> struct Bounds {
  std::optional<X> lb = {};  // lower bounds
  std::optional<X> ub = {};  // upper bounds
};

/// The state after an iteration, which a callback of minimize() gets.
template <FitParameters X = Tensor> struct MinimizeStep {
  X x;         // parameters
  double fun;  // value there
  int nit;     // iterations so far
  int nfev;    // evaluations so far
  bool& stop;  // set it to end here
};

/// Options of minimize(). An option that the method does not have is an InvalidArgument.
template <FitParameters X = Tensor> struct MinimizeOptions {
  MinimizeMethod method = MinimizeMethod::automatic;  // the way to the minimum
  std::optional<double> tol = {};                     // gtol of bfgs; ftol and gtol of l_bfgs_b; xtol of newton_cg
  std::optional<Bounds<X>> bounds = {};               // of l_bfgs_b. x0 is moved to the nearest point within them
  std::function<void(const MinimizeStep<X>&)> callback = {};  // after each iteration
  std::optional<double> gtol = {};  // bfgs, l_bfgs_b: largest element of the (projected) gradient; 1e-5
  std::optional<double> ftol = {};  // l_bfgs_b: relative reduction of the value; 2.22e-9
  std::optional<double> xtol = {};  // newton_cg: mean change of a parameter; 1e-5
  std::optional<int> maxiter = {};  // iterations: 200 for each parameter; 15,000 of l_bfgs_b
  std::optional<int> maxfun = {};   // l_bfgs_b: evaluations; 15,000
  std::optional<int> maxcor = {};   // l_bfgs_b: pairs of changes that it remembers; 10
  std::optional<int> maxls = {};    // l_bfgs_b: evaluations of a line search; 20
  std::optional<double> c1 = {};    // bfgs, newton_cg: sufficient decrease of a line search; 1e-4
  std::optional<double> c2 = {};    // bfgs, newton_cg: its curvature; 0.9
  bool run_eagerly = false;         // the function op by op, for a debugger
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("tol gtol ftol xtol"), Allowed::positive("maxiter maxfun maxcor maxls"),
                      Allowed::between_zero_and_one("c1 c2")};
  }
};

/// The result of minimize().
template <FitParameters X = Tensor> struct MinimizeResult {
  X x;                          // parameters of the lowest value found
  double fun;                   // value there
  X jac;                        // gradient there
  int nit;                      // iterations
  int nfev;                     // evaluations of value and gradient
  int nhev;                     // newton_cg: products with the Hessian
  MinimizeStatus status;        // reason of the end
  std::string message;          // the same in words
  bool success;                 // true if a tolerance was met
  std::vector<double> history;  // values: of x0, then after each iteration
  Tensor hess_inv;              // bfgs: estimate of the inverse Hessian, f64 [n, n] over all parameters
};

namespace detail {

template <class X> fitting::MinimizeSettings settings_of(const MinimizeOptions<X>& o) {
  return {o.method, o.tol, o.gtol, o.ftol, o.xtol, o.maxiter, o.maxfun, o.maxcor, o.maxls, o.c1, o.c2};
}
template <class X> Tensors tensors_of_bound(const std::optional<X>& bound) {
  return bound ? fitting::tensors_of(*bound) : Tensors();
}

/// make(f) for a function f of x0's structure. What is made of a repeated one is kept, for parameters that are alike.
template <class F, class X>
auto kept_for(F& f, const X& x0, const fitting::Parameters& parameters, const std::string& options, const auto& make) {
  if constexpr (is_repeated<std::remove_const_t<F>>) {
    using Made = typename decltype(make(f.function()))::element_type;
    const std::string key = text(parameters.op(), ' ', options, ' ', fitting::structure_of(x0), parameters.layout());
    return f.template kept<Made>(key, [&] { return make(f.function()); });
  } else {
    return make(f);
  }
}

/// `structure`: any value of the parameters' structure.
template <class X>
MinimizeResult<X> minimize_flat(const fitting::Parameters& parameters, const X& structure,
                                std::shared_ptr<const fitting::CompiledObjective> objective,
                                const MinimizeOptions<X>& options) {
  check_options("minimize", options);
  constexpr double infinity = Allowed::infinity;
  const auto as_x = [&](const fitting::Vector& x) { return fitting::with_tensors(structure, parameters.tensors(x)); };
  fitting::MinimizeProblem problem{
      parameters, std::move(objective), settings_of(options), options.bounds.has_value(), {}, {}, {}};
  if (options.bounds) {
    problem.lower = parameters.numbers(tensors_of_bound(options.bounds->lb), "the lower bound", -infinity);
    problem.upper = parameters.numbers(tensors_of_bound(options.bounds->ub), "the upper bound", infinity);
  }
  if (options.callback)
    problem.stops = [&](const fitting::MinimizeProgress& at) {
      bool stop = false;
      options.callback(MinimizeStep<X>{as_x(at.x), at.fun, at.nit, at.nfev, stop});
      return stop;
    };
  const fitting::Minimum found = fitting::find_minimum(std::move(problem));
  const bool success = found.status <= MinimizeStatus::small_step;
  return {as_x(found.x),
          found.value,
          as_x(found.gradient),
          found.iterations,
          found.evaluations,
          found.products,
          found.status,
          text_of(found.status),
          success,
          found.history,
          fitting::tensor_of(found.inverse)};
}

}  // namespace detail

/// A minimum of f near x0. f takes parameters of x0's structure and gives one floating number, a Tensor or a Loss.
/// Integers in x0 become f64, as in SciPy.
///
/// InvalidArgument: a function that gives something else, that does not depend on x, or whose value or gradient at x0
/// is not finite; bounds that cross or have another shape; an option that the method does not have; c1 that is not
/// below c2; a call within `function`. If f is not finite later, steps are shortened. Exceptions of f and of the
/// callback are passed on.
template <class F, FitParameters X>
  requires std::invocable<F&, const X&>
MinimizeResult<X> minimize(F&& f, const X& x0, const std::type_identity_t<MinimizeOptions<X>>& options = {}) {
  const detail::fitting::Parameters parameters("minimize", detail::fitting::tensors_of(x0));
  const auto make = [&](auto& function) {
    const auto of_flat = [&function, x0, parameters](const Tensor& flat) {
      return detail::fitting::number_of(function(detail::fitting::with_tensors(x0, parameters.split(flat))));
    };
    return detail::fitting::compiled_objective(of_flat, parameters.op(), options.run_eagerly);
  };
  const auto objective = detail::kept_for(f, x0, parameters, text(options.run_eagerly), make);
  return detail::minimize_flat(parameters, x0, objective, options);
}

/// A minimum of loss() over Variables, such as a model's, which hold its values afterwards. In the result, x and jac
/// have a tensor for each Variable. An error leaves the Variables as they were. Otherwise as above; `loss` gives a Loss
/// or a Tensor, and every reading of the Variables in it counts.
template <class F>
  requires std::invocable<F&>
MinimizeResult<Tensors> minimize(F&& loss, const Variables& variables, const MinimizeOptions<Tensors>& options = {}) {
  const Tensors x0 = detail::fitting::values_of("minimize", variables);
  const detail::fitting::Parameters parameters("minimize", x0);
  detail::fitting::RestoredVariables restored(variables, x0);
  const auto of_flat = [&](const Tensor& flat) {
    detail::fitting::assign_all(variables, parameters, flat);
    return detail::fitting::number_of(loss());
  };
  const auto objective = detail::fitting::compiled_objective(of_flat, parameters.op(), options.run_eagerly);
  MinimizeResult<Tensors> result = detail::minimize_flat(parameters, x0, objective, options);
  for (std::size_t i = 0; i < variables.size(); ++i) variables[i].assign(result.x[i]);
  restored.keep();
  return result;
}

}  // namespace gradus
