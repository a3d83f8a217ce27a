/// The method dogbox: Powell's dogleg in a trust region that is a box, so that its intersection with the bounds is one,
/// too. Parameters at a bound that the gradient presses on stay there.
/// C. Voglis, I. E. Lagaris: A rectangular trust region dogleg approach for unconstrained and bound constrained
/// nonlinear optimization. WSEAS 2004.
#include <algorithm>
#include <cmath>
#include "gradus/base/rooms.h"
#include "gradus/fitting/fit_state.h"

namespace gradus::detail::fitting {
namespace {

/// The free parameters of one iteration, with the steps of which the dogleg is made.
struct FreePart {
  std::vector<std::size_t> places;
  Vector x, low, high, gradient, scale, newton;
  std::unique_ptr<LinearModel> model;
};

FreePart free_part(const FitState& state, const std::vector<int>& on_bound) {
  FreePart part;
  for (std::size_t i = 0; i < state.size(); ++i)
    if (!(on_bound[i] * state.gradient[i] < 0)) part.places.push_back(i);
  const std::size_t n = part.places.size();
  Matrix columns(state.jacobian.rows, n);
  for (std::size_t i = 0; i < columns.rows; ++i)
    for (std::size_t j = 0; j < n; ++j) columns(i, j) = state.jacobian(i, part.places[j]);
  for (const std::size_t i : part.places) {
    part.x.push_back(state.x[i]);
    part.low.push_back(state.lower()[i]);
    part.high.push_back(state.upper()[i]);
    part.gradient.push_back(state.gradient[i]);
    part.scale.push_back(state.scale[i]);
  }
  if (n == 0) return part;
  part.model = linear_model(std::move(columns), state.scaled_residuals, part.gradient, {});
  part.newton = part.model->newton_step();
  return part;
}

struct Dogleg {
  Vector step;
  std::vector<int> on_bound;  // the bounds of the user that it reaches
  bool hits_edge;             // the step ends at the edge of the trust region
};

Dogleg dogleg(const FreePart& part, double radius) {
  const std::size_t n = part.x.size();
  Vector low(n), high(n), zero(n);
  bool fits = true;
  for (std::size_t i = 0; i < n; ++i) {
    const double edge = radius * part.scale[i];
    low[i] = std::max(part.low[i] - part.x[i], -edge);
    high[i] = std::min(part.high[i] - part.x[i], edge);
    fits = fits && low[i] <= part.newton[i] && part.newton[i] <= high[i];
  }
  if (fits) return {part.newton, std::vector<int>(n), false};

  const Vector down = scaled(part.gradient, -1);
  const Parabola parabola{0.5 * part.model->product(down, down), dot(part.gradient, down)};
  const Vector cauchy = scaled(down, minimum_within(parabola, 0, room_on_line(zero, down, low, high).step).t);
  const Vector rest = difference(part.newton, cauchy);
  const RoomOnLine room = room_on_line(cauchy, rest, low, high);
  Dogleg result{cauchy, std::vector<int>(n), false};
  if (std::isfinite(room.step)) add(result.step, room.step, rest);
  for (std::size_t i = 0; i < n; ++i) {
    if (room.hits[i] == 0) continue;
    const double edge = radius * part.scale[i];
    const bool of_user = room.hits[i] < 0 ? low[i] == part.low[i] - part.x[i] : high[i] == part.high[i] - part.x[i];
    if (of_user) result.on_bound[i] = room.hits[i];
    result.hits_edge = result.hits_edge || (room.hits[i] < 0 ? low[i] == -edge : high[i] == edge);
  }
  return result;
}

/// Where the step ends: exactly at the bounds that it reaches.
Vector end_of(const FitState& state, const FreePart& part, const Vector& step) {
  Vector x = state.x;
  for (std::size_t j = 0; j < step.size(); ++j) x[part.places[j]] += step[j];
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::clamp(x[i], state.lower()[i], state.upper()[i]);
  return x;
}

double largest_scaled(const FreePart& part, const Vector& step) {
  double most = 0;
  for (std::size_t j = 0; j < step.size(); ++j) most = std::max(most, std::abs(step[j] / part.scale[j]));
  return most;
}

}  // namespace

LeastSquaresFit by_dogbox(FitState& state) {
  const std::size_t n = state.size();
  std::vector<int> on_bound(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (state.x[i] == state.lower()[i]) on_bound[i] = -1;
    if (state.x[i] == state.upper()[i]) on_bound[i] = 1;
  }
  double radius = largest(product(state.x, state.scale_inverse));
  if (!(radius > 0)) radius = 1;
  std::optional<LeastSquaresStatus> end;
  for (;;) {
    const FreePart part = free_part(state, on_bound);
    const double optimality = largest(part.gradient);
    const bool is_flat = optimality < state.gtol() || part.places.empty();
    if (is_flat && end != LeastSquaresStatus::stopped) end = LeastSquaresStatus::small_gradient;
    if (!end && !state.may_evaluate()) end = LeastSquaresStatus::max_evaluations;
    if (end) return state.ended(*end, optimality, on_bound);

    double reduction = -1;
    FitState::Trial trial;
    std::vector<int> reached;
    while (!(reduction > 0) && state.may_evaluate()) {
      const Dogleg step = dogleg(part, radius);
      const double foretold = -0.5 * part.model->product(step.step, step.step) - dot(part.gradient, step.step);
      const double length = largest_scaled(part, step.step);
      trial = state.trial_at(end_of(state, part, step.step));
      reached = step.on_bound;
      if (!std::isfinite(trial.cost)) {
        radius = 0.25 * length;
        continue;
      }
      reduction = state.cost - trial.cost;
      const RadiusUpdate next = radius_after(radius, reduction, foretold, length, step.hits_edge);
      radius = next.radius;
      end = end_after(reduction, state.cost, norm(step.step), norm(state.x), next.ratio, state.ftol(), state.xtol());
      if (end) break;
    }
    if (reduction > 0) {
      for (std::size_t j = 0; j < reached.size(); ++j) on_bound[part.places[j]] = reached[j];
      for (std::size_t i = 0; i < n; ++i)
        if (on_bound[i] != 0) trial.x[i] = on_bound[i] < 0 ? state.lower()[i] : state.upper()[i];
      state.move_to(std::move(trial));
    }
    if (state.finish_iteration()) end = LeastSquaresStatus::stopped;
  }
}

}  // namespace gradus::detail::fitting
