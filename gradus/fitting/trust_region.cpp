/// The method trf: Moré's trust region in scaled parameters. Bounds scale each parameter by its distance to the bound
/// that the gradient points to (Coleman and Li), and reflect steps that cross one.
/// M. A. Branch, T. F. Coleman, Y. Li: A subspace, interior, and conjugate gradient method for large-scale
/// bound-constrained minimization problems. SIAM J. Sci. Comput. 21 (1999), 1-23.
#include <algorithm>
#include <cmath>
#include "gradus/fitting/fit_state.h"

namespace gradus::detail::fitting {
namespace {

/// Distances to the bounds that the gradient points to, 1 where there is none, and their derivatives.
struct Distances {
  Vector v, derivative;
};
Distances distances_of(const FitState& state) {
  Distances result{Vector(state.size(), 1), Vector(state.size())};
  for (std::size_t i = 0; i < state.size(); ++i) {
    const double g = state.gradient[i], low = state.lower()[i], high = state.upper()[i];
    if (g < 0 && std::isfinite(high)) {
      result.v[i] = high - state.x[i];
      result.derivative[i] = -1;
    } else if (g > 0 && std::isfinite(low)) {
      result.v[i] = state.x[i] - low;
      result.derivative[i] = 1;
    }
  }
  return result;
}

/// A step in scaled parameters, and the reduction that the model foretells.
struct Choice {
  Vector p;
  double reduction;
};

/// One iteration's model: of parameters scaled by d.
class ScaledModel {
 public:
  ScaledModel(const FitState& state, const Distances& distances) : state_(state) {
    const std::size_t n = state.size();
    d_ = state.scale;
    if (state.has_bounds()) {
      curvature_ = Vector(n);
      for (std::size_t i = 0; i < n; ++i) {
        const double v = distances.derivative[i] != 0 ? distances.v[i] * state.scale_inverse[i] : distances.v[i];
        d_[i] *= std::sqrt(v);
        curvature_[i] = state.gradient[i] * distances.derivative[i] * state.scale[i];
      }
    }
    gradient_ = product(state.gradient, d_);
    model_ = state.model(d_, curvature_);
  }

  const Vector& d() const { return d_; }
  RegionStep step(double radius, double alpha) const { return step_in_region(*model_, gradient_, radius, alpha); }

  /// The step p, or what becomes of it at a bound: cut there, reflected, or along the gradient. `theta`: the share of
  /// the way to a bound that is taken.
  Choice choose(const Vector& p, double radius, double theta) const {
    const Vector& x = state_.x;
    const Vector step = product(p, d_);
    Vector end = x;
    add(end, 1, step);
    if (state_.is_within(end)) return {p, -value(p)};

    const RoomOnLine room = room_on_line(x, step, state_.lower(), state_.upper());
    const Vector to_bound = scaled(p, room.step);
    Vector reflected = p;
    for (std::size_t i = 0; i < p.size(); ++i)
      if (room.hits[i] != 0) reflected[i] = -reflected[i];
    Choice best = reflection(to_bound, reflected, room.step, radius, theta);
    const auto take = [&](const Choice& other) {
      if (other.reduction > best.reduction) best = other;
    };
    const Vector cut = scaled(to_bound, theta);
    take({cut, -value(cut)});
    take(along_gradient(radius, theta));
    return best;
  }

 private:
  double products(const Vector& a, const Vector& b) const {
    double sum = model_->product(a, b);
    for (std::size_t i = 0; i < curvature_.size(); ++i) sum += curvature_[i] * a[i] * b[i];
    return sum;
  }
  double value(const Vector& p) const { return 0.5 * products(p, p) + dot(gradient_, p); }

  Choice reflection(const Vector& from, const Vector& direction, double share, double radius, double theta) const {
    const double aa = dot(direction, direction), ab = dot(from, direction), bb = dot(from, from);
    const double to_edge = (std::sqrt(std::max(0.0, ab * ab - aa * (bb - radius * radius))) - ab) / aa;
    Vector on_bound = state_.x;
    add(on_bound, 1, product(from, d_));
    const double room = room_on_line(on_bound, product(direction, d_), state_.lower(), state_.upper()).step;
    const double length = std::min(room, to_edge);
    if (!(length > 0)) return {from, -Allowed::infinity};
    const double least = (1 - theta) * share / length, most = room <= to_edge ? theta * room : to_edge;
    if (!(least <= most)) return {from, -Allowed::infinity};
    const Parabola parabola{0.5 * products(direction, direction),
                            dot(gradient_, direction) + products(from, direction)};
    const ParabolaMinimum minimum = minimum_within(parabola, least, most, value(from));
    Choice choice{from, -minimum.value};
    add(choice.p, minimum.t, direction);
    return choice;
  }

  Choice along_gradient(double radius, double theta) const {
    const Vector down = scaled(gradient_, -1);
    const double room = room_on_line(state_.x, product(down, d_), state_.lower(), state_.upper()).step;
    const double to_edge = radius / norm(down), most = room < to_edge ? theta * room : to_edge;
    const ParabolaMinimum minimum = minimum_within({0.5 * products(down, down), dot(gradient_, down)}, 0, most);
    return {scaled(down, minimum.t), -minimum.value};
  }

  const FitState& state_;
  Vector d_, curvature_, gradient_;
  std::unique_ptr<LinearModel> model_;
};

double first_radius(const FitState& state, const Distances& distances) {
  Vector size = product(state.x, state.scale_inverse);
  for (std::size_t i = 0; i < size.size(); ++i) {
    const double v = distances.v[i] * (distances.derivative[i] != 0 ? state.scale_inverse[i] : 1);
    size[i] /= std::sqrt(v);
  }
  const double radius = norm(size);
  return radius > 0 ? radius : 1;
}

}  // namespace

std::vector<int> active_bounds(const Vector& x, const Vector& low, const Vector& high, double tolerance) {
  std::vector<int> active(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double below = x[i] - low[i], above = high[i] - x[i];
    const double near_low = tolerance * std::max(1.0, std::abs(low[i]));
    const double near_high = tolerance * std::max(1.0, std::abs(high[i]));
    if (std::isfinite(low[i]) && below <= std::min(above, near_low)) active[i] = -1;
    if (std::isfinite(high[i]) && above <= std::min(below, near_high)) active[i] = 1;
  }
  return active;
}

Vector strictly_within(Vector x, const Vector& low, const Vector& high, double distance) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double near_low = distance * std::max(1.0, std::abs(low[i]));
    const double near_high = distance * std::max(1.0, std::abs(high[i]));
    if (std::isfinite(low[i]) && x[i] - low[i] <= near_low)
      x[i] = distance == 0 ? std::nextafter(low[i], high[i]) : low[i] + near_low;
    else if (std::isfinite(high[i]) && high[i] - x[i] <= near_high)
      x[i] = distance == 0 ? std::nextafter(high[i], low[i]) : high[i] - near_high;
    if (x[i] < low[i] || x[i] > high[i]) x[i] = 0.5 * (low[i] + high[i]);
  }
  return x;
}

LeastSquaresFit by_trust_region(FitState& state) {
  Distances distances = distances_of(state);
  double radius = first_radius(state, distances), alpha = 0;
  std::optional<LeastSquaresStatus> end;
  for (;;) {
    distances = distances_of(state);
    const double optimality = largest(product(state.gradient, distances.v));
    if (optimality < state.gtol() && end != LeastSquaresStatus::stopped) end = LeastSquaresStatus::small_gradient;
    if (!end && !state.may_evaluate()) end = LeastSquaresStatus::max_evaluations;
    if (end) return state.ended(*end, optimality, active_bounds(state.x, state.lower(), state.upper(), state.xtol()));

    const ScaledModel model(state, distances);
    const double theta = std::max(0.995, 1 - optimality);
    double reduction = -1;
    FitState::Trial trial;
    while (!(reduction > 0) && state.may_evaluate()) {
      const RegionStep full = model.step(radius, alpha);
      alpha = full.alpha;
      const Choice choice = model.choose(full.p, radius, theta);
      const Vector move = product(choice.p, model.d());
      Vector x = state.x;
      add(x, 1, move);
      if (state.has_bounds()) x = strictly_within(std::move(x), state.lower(), state.upper(), 0);
      const double step = norm(move), length = norm(choice.p);
      trial = state.trial_at(std::move(x));
      if (!std::isfinite(trial.cost)) {
        radius = 0.25 * length;
        continue;
      }
      reduction = state.cost - trial.cost;
      const RadiusUpdate next = radius_after(radius, reduction, choice.reduction, length, length > 0.95 * radius);
      end = end_after(reduction, state.cost, step, norm(state.x), next.ratio, state.ftol(), state.xtol());
      if (end) break;
      alpha *= radius / next.radius;
      radius = next.radius;
    }
    if (reduction > 0) state.move_to(std::move(trial));
    if (state.finish_iteration()) end = LeastSquaresStatus::stopped;
  }
}

}  // namespace gradus::detail::fitting
