/// The method lm: Levenberg and Marquardt's as MINPACK's lmder has it.
/// J. J. Moré: The Levenberg-Marquardt algorithm: implementation and theory. Lecture Notes in Mathematics 630 (1978).
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/fitting/fit_state.h"

namespace gradus::detail::fitting {
namespace {

/// The largest cosine of the angle between the residuals and a column of the Jacobian.
double largest_cosine(const FitState& state, double size) {
  if (size == 0) return 0;
  const Vector squares = column_squares(state.jacobian);
  double most = 0;
  for (std::size_t j = 0; j < state.size(); ++j)
    if (squares[j] > 0) most = std::max(most, std::abs(state.gradient[j] / size) / std::sqrt(squares[j]));
  return most;
}

/// A step whose length is within a tenth of the radius, or the whole one if that is shorter.
RegionStep damped_step(const LinearModel& model, const Vector& gradient, double radius, double alpha) {
  constexpr double tiny = std::numeric_limits<double>::min();
  DampedStep newton = model.damped(0);  // MINPACK takes it of any rank that is not exactly too small
  const bool exists = all_finite(newton.p) && newton.slope < 0;
  if (!exists) newton = {model.newton_step(), 0, 0};
  const double length = norm(newton.p);
  double over = length - radius;
  if (over <= 0.1 * radius) return {std::move(newton.p), 0};
  double low = exists ? over * length / (radius * -newton.slope) : 0;
  double high = norm(gradient) / radius;
  if (high == 0) high = tiny / std::min(radius, 0.1);
  alpha = std::min(std::max(alpha, low), high);
  if (alpha == 0) alpha = norm(gradient) / length;
  constexpr int most = 10;
  for (int i = 1;; ++i) {
    if (alpha == 0) alpha = std::max(tiny, 0.001 * high);
    DampedStep step = model.damped(alpha);
    const double before = over;
    over = step.length - radius;
    if (std::abs(over) <= 0.1 * radius || (low == 0 && over <= before && before < 0) || i == most)
      return {std::move(step.p), alpha};
    const double correction = over * step.length / (radius * -step.slope);
    if (over > 0) low = std::max(low, alpha);
    if (over < 0) high = std::min(high, alpha);
    alpha = std::max(low, alpha + correction);
  }
}

/// The relative reductions of the squares of the residuals, and what becomes of radius and damping.
struct Judged {
  double actual, predicted, ratio;
};
Judged judge(const LinearModel& model, const RegionStep& step, double length, double size, double size_after,
             double& radius, double& alpha) {
  Judged j{};
  j.actual = 0.1 * size_after < size ? 1 - (size_after / size) * (size_after / size) : -1;
  const double linear = model.product(step.p, step.p) / (size * size),
               damping = alpha * (length / size) * (length / size);
  j.predicted = linear + 2 * damping;
  j.ratio = j.predicted != 0 ? j.actual / j.predicted : 0;
  const double slope = -(linear + damping);
  if (j.ratio <= 0.25) {
    double factor = j.actual >= 0 ? 0.5 : 0.5 * slope / (slope + 0.5 * j.actual);
    if (!(0.1 * size_after < size) || factor < 0.1) factor = 0.1;
    radius = factor * std::min(radius, 10 * length);
    alpha /= factor;
  } else if (alpha == 0 || j.ratio >= 0.75) {
    radius = 2 * length;
    alpha *= 0.5;
  }
  return j;
}

}  // namespace

LeastSquaresFit by_levenberg_marquardt(FitState& state) {
  double radius = 100 * norm(product(state.x, state.scale_inverse)), alpha = 0;
  if (!(radius > 0)) radius = 100;
  bool is_first = true;
  const auto ended = [&](LeastSquaresStatus status) {
    return state.ended(status, largest(state.gradient), std::vector<int>(state.size()));
  };
  for (;;) {
    const double size = norm(state.residuals);
    if (largest_cosine(state, size) <= state.gtol()) return ended(LeastSquaresStatus::small_gradient);
    const std::unique_ptr<LinearModel> model = state.model(state.scale);
    const Vector gradient = product(state.gradient, state.scale);
    for (bool is_better = false; !is_better;) {
      if (!state.may_evaluate()) return ended(LeastSquaresStatus::max_evaluations);
      const RegionStep step = damped_step(*model, gradient, radius, alpha);
      alpha = step.alpha;
      const double length = norm(step.p);
      if (is_first) radius = std::min(radius, length);
      Vector x = state.x;
      add(x, 1, product(step.p, state.scale));
      double extent = norm(product(state.x, state.scale_inverse));
      FitState::Trial trial = state.trial_at(std::move(x));
      const Judged judged = judge(*model, step, length, size, std::sqrt(2 * trial.cost), radius, alpha);
      is_better = judged.ratio >= 1e-4;
      if (is_better) {
        extent = norm(product(trial.x, state.scale_inverse));
        is_first = false;
        state.move_to(std::move(trial));
        if (state.finish_iteration()) return ended(LeastSquaresStatus::stopped);
      }
      const bool is_small_reduction =
          std::abs(judged.actual) <= state.ftol() && judged.predicted <= state.ftol() && judged.ratio <= 2;
      const bool is_small_step = radius <= state.xtol() * extent;
      if (is_small_reduction && is_small_step) return ended(LeastSquaresStatus::small_both);
      if (is_small_reduction) return ended(LeastSquaresStatus::small_reduction);
      if (is_small_step) return ended(LeastSquaresStatus::small_step);
    }
  }
}

}  // namespace gradus::detail::fitting
