/// Checks of what a user gives, the start, and the choice of the method.
#include "gradus/fitting/descent.h"
#include <algorithm>
#include <cmath>
#include <utility>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/rooms.h"
#include "gradus/graph/call_context.h"
#include "gradus/ops/constant.h"

namespace gradus {

std::string text_of(MinimizeStatus status) {
  switch (status) {
    case MinimizeStatus::small_gradient: return "the gradient is within gtol";
    case MinimizeStatus::small_reduction: return "the last iteration reduced the value by less than ftol of it";
    case MinimizeStatus::small_step: return "the last step is within xtol";
    case MinimizeStatus::max_iterations: return "maxiter iterations are done";
    case MinimizeStatus::max_evaluations: return "more than maxfun evaluations are done";
    case MinimizeStatus::precision_loss:
      return "the line search found no lower value, because of rounding, or because the function jumps or is not "
             "finite";
    case MinimizeStatus::not_positive_definite:
      return "conjugate gradients did not end: the Hessian is not positive definite";
    case MinimizeStatus::stopped: return "the callback has stopped it";
  }
  return {};
}

namespace detail::fitting {
namespace {

struct OptionOfMethods {
  std::string_view name;
  bool is_given;
  std::vector<MinimizeMethod> methods;
};

std::string_view name_of_method(MinimizeMethod method) {
  constexpr std::string_view names[] = {"automatic", "bfgs", "l_bfgs_b", "newton_cg"};
  return names[static_cast<int>(method)];
}

/// SciPy warns of these and goes on without them.
void refuse_options_of_others(const MinimizeProblem& problem) {
  const MinimizeSettings& s = problem.settings;
  constexpr MinimizeMethod bfgs = MinimizeMethod::bfgs, l_bfgs_b = MinimizeMethod::l_bfgs_b,
                           newton_cg = MinimizeMethod::newton_cg;
  const OptionOfMethods table[] = {
      {"bounds", problem.has_bounds, {l_bfgs_b}},   {"gtol", s.gtol.has_value(), {bfgs, l_bfgs_b}},
      {"ftol", s.ftol.has_value(), {l_bfgs_b}},     {"xtol", s.xtol.has_value(), {newton_cg}},
      {"maxfun", s.maxfun.has_value(), {l_bfgs_b}}, {"maxcor", s.maxcor.has_value(), {l_bfgs_b}},
      {"maxls", s.maxls.has_value(), {l_bfgs_b}},   {"c1", s.c1.has_value(), {bfgs, newton_cg}},
      {"c2", s.c2.has_value(), {bfgs, newton_cg}},
  };
  for (const OptionOfMethods& option : table)
    require(!option.is_given || std::ranges::find(option.methods, s.method) != option.methods.end(),
            "minimize: ", option.name, " is no option of the method ", name_of_method(s.method), "; it is one of ",
            name_of_method(option.methods.front()));
}

MinimizeProblem checked_problem(MinimizeProblem problem) {
  MinimizeSettings& s = problem.settings;
  if (s.method == MinimizeMethod::automatic)
    s.method = problem.has_bounds ? MinimizeMethod::l_bfgs_b : MinimizeMethod::bfgs;
  refuse_options_of_others(problem);
  require(s.c1.value_or(1e-4) < s.c2.value_or(0.9), "minimize: c1 must be less than c2, got ", s.c1.value_or(1e-4),
          " and ", s.c2.value_or(0.9));
  for (std::size_t i = 0; i < problem.lower.size(); ++i)
    require(problem.lower[i] <= problem.upper[i], "minimize: the lower bound ", problem.lower[i],
            " is above the upper bound ", problem.upper[i], " for parameter ", i);
  return problem;
}

}  // namespace

Tensor tensor_of(const Matrix& matrix) {
  if (matrix.values.empty()) return {};
  const Shape shape{static_cast<std::int64_t>(matrix.rows), static_cast<std::int64_t>(matrix.columns)};
  return from_values(std::span<const double>(matrix.values), shape);
}

Descent::Descent(MinimizeProblem problem, const Parameters& parameters)
    : problem_(checked_problem(std::move(problem))), objective_(problem_.objective, parameters) {
  Vector x = parameters.start();
  for (std::size_t i = 0; i < problem_.lower.size(); ++i) x[i] = std::clamp(x[i], problem_.lower[i], problem_.upper[i]);
  at = evaluate(std::move(x));
  require(std::isfinite(at.value), "minimize: the objective is ", at.value,
          " at x0; begin at a point where it is finite");
  require(all_finite(at.gradient), "minimize: the gradient of the objective is not finite at x0, where its value is ",
          at.value, "; begin at another point");
  if (largest(at.gradient) == 0) objective_.require_dependence(at.x);
  history_.push_back(at.value);
}

Place Descent::evaluate(Vector x) {
  Place place;
  place.x = std::move(x);
  place.value = objective_.evaluate(place.x, place.gradient);
  return place;
}

std::optional<MinimizeStatus> Descent::finish_iteration(int maxiter) {
  history_.push_back(at.value);
  if (problem_.stops && problem_.stops({at.x, at.value, iterations(), objective_.evaluations()}))
    return MinimizeStatus::stopped;
  if (iterations() >= maxiter) return MinimizeStatus::max_iterations;
  return {};
}

LineResult Descent::search(const LineRules& rules, const Vector& direction, double slope, double first,
                           const std::function<Vector(double step)>& place) {
  Place trial;
  double trial_step = 0;
  const auto at_step = [&](double step) {
    trial_step = step;
    trial = evaluate(place(step));
    const bool finite = std::isfinite(trial.value) && all_finite(trial.gradient);
    return LinePlace{step, finite ? trial.value : Allowed::infinity, dot(trial.gradient, direction)};
  };
  const LineResult found = search_line(rules, {0, at.value, slope}, first, at_step);
  if (found.step == 0) return found;
  if (trial_step != found.step) at_step(found.step);
  before = std::exchange(at, std::move(trial));
  return found;
}

bool Descent::move_along(const Vector& direction) {
  const double slope = dot(at.gradient, direction);
  if (!(slope < 0)) return false;
  // The first step of bfgs changes x by about 1; later ones expect the reduction of the iteration before (SciPy).
  const double expected = value_before_.value_or(problem_.settings.method == MinimizeMethod::bfgs
                                                     ? at.value + norm(at.gradient) / 2
                                                     : std::numeric_limits<double>::quiet_NaN());
  double first = 1.01 * 2 * (at.value - expected) / slope;
  first = first >= 0 ? std::min(1.0, first) : 1.0;
  if (first == 0) first = 1;

  const LineRules rules{
      problem_.settings.c1.value_or(1e-4), problem_.settings.c2.value_or(0.9), 1e-14, 1e-100, 1e100, 100};
  const LineResult found = search(rules, direction, slope, first, [&](double step) {
    Vector x = at.x;
    add(x, step, direction);
    return x;
  });
  if (found.step == 0) return false;
  value_before_ = before.value;
  // Without the Wolfe conditions, a reduction of this size is one of rounding: there is nothing left to gain.
  constexpr double of_rounding = 1e-10;
  if (found.wolfe || *value_before_ - at.value > of_rounding * std::abs(at.value)) return true;
  history_.push_back(at.value);
  return false;
}

Minimum Descent::ended(MinimizeStatus status) {
  return {at.x,   at.gradient, at.value, iterations(), objective_.evaluations(), objective_.products(),
          status, history_,    {}};
}

Minimum find_minimum(MinimizeProblem problem) {
  const HostFloats floats;
  const FieldScope<&CallContext::listener> untaped(nullptr);  // a tape around it would be led through every step
  const Parameters& parameters = problem.parameters;
  Descent descent(std::move(problem), parameters);
  switch (descent.settings().method) {
    case MinimizeMethod::l_bfgs_b: return by_l_bfgs_b(descent);
    case MinimizeMethod::newton_cg: return by_newton_cg(descent);
    default: return by_bfgs(descent);
  }
}

}  // namespace detail::fitting
}  // namespace gradus
