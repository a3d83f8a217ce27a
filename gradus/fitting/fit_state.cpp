/// Checks of what a user gives, the start, and the choice of the method.
#include "gradus/fitting/fit_state.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/rooms.h"
#include "gradus/fitting/robust_loss.h"
#include "gradus/graph/call_context.h"
#include "gradus/ops/constant.h"

namespace gradus {

std::string text_of(LeastSquaresStatus status) {
  switch (status) {
    case LeastSquaresStatus::small_gradient: return "the gradient is within gtol";
    case LeastSquaresStatus::small_reduction: return "the cost fell by less than ftol of it";
    case LeastSquaresStatus::small_step: return "the last step is within xtol";
    case LeastSquaresStatus::small_both:
      return "the reduction of the cost is within ftol, and the last step within xtol";
    case LeastSquaresStatus::max_evaluations: return "max_nfev evaluations are done";
    case LeastSquaresStatus::stopped: return "the callback has stopped it";
  }
  return {};
}

namespace detail::fitting {
namespace {

constexpr double epsilon_of_tolerance = std::numeric_limits<double>::epsilon();

bool is_tested(const std::optional<double>& tolerance) { return tolerance.value_or(0) >= epsilon_of_tolerance; }

void check_tolerances(const LeastSquaresSettings& s) {
  if (s.method == LeastSquaresMethod::lm)
    require(is_tested(s.ftol) && is_tested(s.xtol) && is_tested(s.gtol),
            "least_squares: the method lm tests ftol, xtol and gtol, which must be at least ", epsilon_of_tolerance);
  require(is_tested(s.ftol) || is_tested(s.xtol) || is_tested(s.gtol),
          "least_squares: one of ftol, xtol and gtol must be at least ", epsilon_of_tolerance, ", else it never ends");
}

bool any_bound(const LeastSquaresProblem& problem) {
  const auto is_bound = [](double bound) { return std::isfinite(bound); };
  return std::ranges::any_of(problem.lower, is_bound) || std::ranges::any_of(problem.upper, is_bound);
}

void check_bounds(const LeastSquaresProblem& problem, const Vector& x0) {
  for (std::size_t i = 0; i < x0.size(); ++i) {
    const double low = problem.lower[i], high = problem.upper[i];
    require(low < high, "least_squares: the lower bound ", low, " is not below the upper bound ", high,
            " for parameter ", i);
    require(low <= x0[i] && x0[i] <= high, "least_squares: x0 is ", x0[i], " for parameter ", i,
            ", outside of its bounds ", low, " and ", high);
  }
}

LeastSquaresProblem checked_fit(LeastSquaresProblem problem) {
  const LeastSquaresSettings& s = problem.settings;
  check_tolerances(s);
  if (s.method == LeastSquaresMethod::lm) {
    require(s.loss == RobustLoss::linear, "least_squares: the method lm has the linear loss alone; take trf or dogbox");
    require(!any_bound(problem), "least_squares: the method lm has no bounds; take trf or dogbox");
  }
  require(problem.x_scale.empty() || !s.jac_scale.value_or(false),
          "least_squares: both x_scale and jac_scale are given; choose one");
  for (const double size : problem.x_scale)
    require(std::isfinite(size) && size > 0, "least_squares: x_scale must be positive and finite, got ", size);
  return problem;
}

}  // namespace

FitState::FitState(LeastSquaresProblem problem, const Parameters& parameters)
    : problem_(checked_fit(std::move(problem))), evaluator_(problem_.residuals, parameters) {
  const LeastSquaresSettings& s = settings();
  x = parameters.start();
  check_bounds(problem_, x);
  bounded_ = any_bound(problem_);
  most_evaluations_ = s.max_nfev.value_or(times_as_int(100, x.size()));
  const bool has_sizes = !problem_.x_scale.empty();
  scales_by_jacobian_ = s.jac_scale.value_or(s.method == LeastSquaresMethod::lm && !has_sizes);
  scale = has_sizes ? problem_.x_scale : Vector(x.size(), 1);
  scale_inverse = scale;
  for (double& each : scale_inverse) each = 1 / each;
  if (s.method == LeastSquaresMethod::trf && bounded_) x = strictly_within(x, lower(), upper(), 1e-10);

  residuals = evaluator_.evaluate(x);
  require(all_finite(residuals), "least_squares: the residuals are not finite at x0; begin at a point where they are");
  require(s.method != LeastSquaresMethod::lm || residuals.size() >= x.size(), "least_squares: there are ",
          residuals.size(), " residuals for ", x.size(),
          " parameters; the method lm needs no fewer; take trf or dogbox");
  cost = cost_of(residuals, s.loss, s.f_scale);
  linearize();
  require(all_finite(jacobian.values), "least_squares: the Jacobian of the residuals is not finite at x0");
  if (largest(jacobian.values) == 0) evaluator_.require_dependence(x);
  history_.push_back(cost);
}

void FitState::linearize() {
  jacobian = evaluator_.jacobian(x);
  scaled_residuals = residuals;
  scale_rows(jacobian, scaled_residuals, settings().loss, settings().f_scale);
  gradient = transposed_times(jacobian, scaled_residuals);
  if (scales_by_jacobian_) update_scale();
}

/// Sizes of columns; they never fall.
void FitState::update_scale() {
  const bool is_first = history_.empty();
  const Vector squares = column_squares(jacobian);
  for (std::size_t j = 0; j < squares.size(); ++j) {
    double length = std::sqrt(squares[j]);
    if (is_first) length = length == 0 ? 1 : length;
    else length = std::max(length, scale_inverse[j]);
    scale_inverse[j] = length;
    scale[j] = 1 / length;
  }
}

bool FitState::is_within(const Vector& at) const {
  for (std::size_t i = 0; i < at.size(); ++i)
    if (!(lower()[i] <= at[i] && at[i] <= upper()[i])) return false;
  return true;
}

FitState::Trial FitState::trial_at(Vector at) {
  Trial trial{std::move(at), {}, Allowed::infinity};
  trial.residuals = evaluator_.evaluate(trial.x);
  if (all_finite(trial.residuals)) trial.cost = cost_of(trial.residuals, settings().loss, settings().f_scale);
  return trial;
}

void FitState::move_to(Trial trial) {
  x = std::move(trial.x);
  residuals = std::move(trial.residuals);
  cost = trial.cost;
  linearize();
}

bool FitState::finish_iteration() {
  history_.push_back(cost);
  const int iterations = static_cast<int>(history_.size()) - 1;
  return problem_.stops && problem_.stops({x, cost, iterations, evaluator_.evaluations()});
}

std::unique_ptr<LinearModel> FitState::model(const Vector& d, const Vector& curvature) const {
  Matrix columns = jacobian;
  for (std::size_t i = 0; i < columns.rows; ++i)
    for (std::size_t j = 0; j < columns.columns; ++j) columns(i, j) *= d[j];
  return linear_model(std::move(columns), scaled_residuals, product(gradient, d), curvature);
}

LeastSquaresFit FitState::ended(LeastSquaresStatus status, double optimality, std::vector<int> active) {
  const Tensor values = from_values(std::span<const double>(residuals), evaluator_.shape());
  return {x,
          gradient,
          cost,
          optimality,
          values,
          tensor_of(jacobian),
          std::move(active),
          static_cast<int>(history_.size()) - 1,
          evaluator_.evaluations(),
          evaluator_.jacobians(),
          status,
          history_};
}

RadiusUpdate radius_after(double radius, double actual, double predicted, double step_length, bool hits_edge) {
  double ratio = 0;
  if (predicted > 0) ratio = actual / predicted;
  else if (predicted == 0 && actual == 0) ratio = 1;
  if (ratio < 0.25) return {0.25 * step_length, ratio};
  return {ratio > 0.75 && hits_edge ? 2 * radius : radius, ratio};
}

std::optional<LeastSquaresStatus> end_after(double reduction, double cost, double step, double size, double ratio,
                                            double ftol, double xtol) {
  const bool is_small_reduction = reduction < ftol * cost && ratio > 0.25, is_small_step = step < xtol * (xtol + size);
  if (is_small_reduction && is_small_step) return LeastSquaresStatus::small_both;
  if (is_small_reduction) return LeastSquaresStatus::small_reduction;
  if (is_small_step) return LeastSquaresStatus::small_step;
  return {};
}

ParabolaMinimum minimum_within(const Parabola& parabola, double low, double high, double constant) {
  const auto at = [&](double t) { return ParabolaMinimum{t, t * (parabola.a * t + parabola.b) + constant}; };
  ParabolaMinimum best = at(low);
  const auto take = [&](const ParabolaMinimum& other) {
    if (other.value < best.value) best = other;
  };
  take(at(high));
  if (parabola.a != 0) {
    const double middle = -0.5 * parabola.b / parabola.a;
    if (low < middle && middle < high) take(at(middle));
  }
  return best;
}

RoomOnLine room_on_line(const Vector& x, const Vector& s, const Vector& low, const Vector& high) {
  Vector steps(x.size(), Allowed::infinity);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (s[i] != 0) steps[i] = std::max((low[i] - x[i]) / s[i], (high[i] - x[i]) / s[i]);
  RoomOnLine room{*std::ranges::min_element(steps), std::vector<int>(x.size())};
  for (std::size_t i = 0; i < x.size(); ++i)
    if (steps[i] == room.step && s[i] != 0) room.hits[i] = s[i] > 0 ? 1 : -1;
  return room;
}

LeastSquaresFit find_least_squares(LeastSquaresProblem problem) {
  const HostFloats floats;
  const FieldScope<&CallContext::listener> untaped(nullptr);  // a tape around it would be led through every step
  const Parameters& parameters = problem.parameters;
  FitState state(std::move(problem), parameters);
  switch (state.settings().method) {
    case LeastSquaresMethod::lm: return by_levenberg_marquardt(state);
    case LeastSquaresMethod::dogbox: return by_dogbox(state);
    default: return by_trust_region(state);
  }
}

Tensor covariance_of(const Tensor& jacobian, double cost, bool absolute_sigma) {
  Matrix j;
  j.rows = static_cast<std::size_t>(jacobian.shape()[0]);
  j.columns = static_cast<std::size_t>(jacobian.shape()[1]);
  j.values = jacobian.to_vector<double>();
  InverseGram gram = inverse_gram(j);
  double factor = 1;
  if (!absolute_sigma)
    factor = j.rows > j.columns ? 2 * cost / static_cast<double>(j.rows - j.columns) : Allowed::infinity;
  if (gram.rank < j.columns || !std::isfinite(factor))
    gram.inverse.values.assign(gram.inverse.values.size(), Allowed::infinity);
  else gram.inverse.values = scaled(std::move(gram.inverse.values), factor);
  return tensor_of(gram.inverse);
}

}  // namespace detail::fitting
}  // namespace gradus
