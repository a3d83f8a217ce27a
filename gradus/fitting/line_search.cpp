/// The search keeps an interval that holds a step with both conditions, and chooses the next trial by cubic and
/// quadratic interpolation (section 4 of the paper).
#include "gradus/fitting/line_search.h"
#include <algorithm>
#include <cmath>
#include <optional>

namespace gradus::detail::fitting {
namespace {

/// The root of the discriminant of the cubic through two places, times the sign that `trial` asks for.
struct Cubic {
  double theta, gamma;
};
Cubic cubic_through(const LinePlace& a, const LinePlace& b) {
  const double theta = 3 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope;
  const double size = std::max({std::abs(theta), std::abs(a.slope), std::abs(b.slope)});
  if (size == 0) return {0, 0};
  const double inner = (theta / size) * (theta / size) - (a.slope / size) * (b.slope / size);
  return {theta, size * std::sqrt(std::max(0.0, inner))};
}

/// Case 1: the value has risen. Between the cubic's minimum and the quadratic's.
double step_after_rise(const LinePlace& best, const LinePlace& trial) {
  auto [theta, gamma] = cubic_through(best, trial);
  if (trial.step < best.step) gamma = -gamma;
  const double ratio = ((gamma - best.slope) + theta) / (((gamma - best.slope) + gamma) + trial.slope);
  const double length = trial.step - best.step;
  const double cubic = best.step + ratio * length;
  const double chord = (best.value - trial.value) / length;
  const double quadratic = best.step + best.slope / (chord + best.slope) / 2 * length;
  return std::abs(cubic - best.step) <= std::abs(quadratic - best.step) ? cubic : cubic + (quadratic - cubic) / 2;
}

double secant(const LinePlace& best, const LinePlace& trial) {
  return trial.step + trial.slope / (trial.slope - best.slope) * (best.step - trial.step);
}

/// Case 2: the slope has changed its sign. The one of cubic and secant that is farther from the trial.
double step_after_turn(const LinePlace& best, const LinePlace& trial) {
  auto [theta, gamma] = cubic_through(best, trial);
  if (trial.step > best.step) gamma = -gamma;
  const double ratio = ((gamma - trial.slope) + theta) / (((gamma - trial.slope) + gamma) + best.slope);
  const double cubic = trial.step + ratio * (best.step - trial.step), quadratic = secant(best, trial);
  return std::abs(cubic - trial.step) > std::abs(quadratic - trial.step) ? cubic : quadratic;
}

}  // namespace

LineSearch::LineSearch(const LineRules& rules, const LinePlace& start, double first)
    : rules_(rules),
      start_(start),
      enough_(rules.sufficient * start.slope),
      step_(first),
      best_(start),
      other_(start),
      high_(5 * first),
      width_(rules.most - rules.least),
      width_before_(2 * width_) {}

LineSearch::State LineSearch::hear(double value, double slope) {
  const double bound = start_.value + step_ * enough_;
  const bool is_less = value <= bound;
  if (first_stage_ && is_less && slope >= 0) first_stage_ = false;
  if (is_less && std::abs(slope) <= rules_.curvature * -start_.slope) return State::converged;
  if (bracketed_ && (step_ <= low_ || step_ >= high_ || high_ - low_ <= rules_.width * high_)) return State::gave_up;
  if (step_ == rules_.most && is_less && slope <= enough_) return State::gave_up;
  if (step_ == rules_.least && (!is_less || slope >= enough_)) return State::gave_up;
  choose_next({step_, value, slope});
  return State::evaluate;
}

/// In the first stage, while no value was sufficiently less, the function minus the line of sufficient decrease
/// decides.
void LineSearch::choose_next(const LinePlace& trial) {
  const double bound = start_.value + trial.step * enough_;
  if (first_stage_ && trial.value <= best_.value && trial.value > bound) {
    const auto below = [&](const LinePlace& p) {
      return LinePlace{p.step, p.value - p.step * enough_, p.slope - enough_};
    };
    const auto above = [&](const LinePlace& p) {
      return LinePlace{p.step, p.value + p.step * enough_, p.slope + enough_};
    };
    LinePlace best = below(best_), other = below(other_);
    narrow(best, other, below(trial));
    best_ = above(best);
    other_ = above(other);
  } else {
    narrow(best_, other_, trial);
  }
  if (bracketed_) {
    const double size = std::abs(other_.step - best_.step);
    if (size >= 0.66 * width_before_) step_ = best_.step + 0.5 * (other_.step - best_.step);
    width_before_ = width_;
    width_ = size;
    low_ = std::min(best_.step, other_.step);
    high_ = std::max(best_.step, other_.step);
  } else {
    low_ = step_ + 1.1 * (step_ - best_.step);
    high_ = step_ + 4 * (step_ - best_.step);
  }
  step_ = std::clamp(step_, rules_.least, rules_.most);
  if (bracketed_ && (step_ <= low_ || step_ >= high_ || high_ - low_ <= rules_.width * high_)) step_ = best_.step;
}

/// Cases 3 and 4: the value is less and the slope keeps its sign.
double LineSearch::safeguarded(const LinePlace& best, const LinePlace& other, const LinePlace& trial) const {
  const bool rises = trial.step > best.step;
  if (!(std::abs(trial.slope) < std::abs(best.slope))) {
    if (!bracketed_) return rises ? high_ : low_;
    auto [theta, gamma] = cubic_through(other, trial);
    if (trial.step > other.step) gamma = -gamma;
    const double ratio = ((gamma - trial.slope) + theta) / (((gamma - trial.slope) + gamma) + other.slope);
    return trial.step + ratio * (other.step - trial.step);
  }
  auto [theta, gamma] = cubic_through(best, trial);
  if (rises) gamma = -gamma;
  const double ratio = ((gamma - trial.slope) + theta) / ((gamma + (best.slope - trial.slope)) + gamma);
  double cubic = rises ? high_ : low_;
  if (ratio < 0 && gamma != 0) cubic = trial.step + ratio * (best.step - trial.step);
  const double quadratic = secant(best, trial);
  const bool cubic_is_nearer = std::abs(cubic - trial.step) < std::abs(quadratic - trial.step);
  if (!bracketed_)
    return std::clamp(std::abs(cubic - trial.step) > std::abs(quadratic - trial.step) ? cubic : quadratic, low_, high_);
  const double nearer = cubic_is_nearer ? cubic : quadratic, limit = trial.step + 0.66 * (other.step - trial.step);
  return rises ? std::min(limit, nearer) : std::max(limit, nearer);
}

/// The trial becomes an end of the interval; step_ becomes the next trial.
void LineSearch::narrow(LinePlace& best, LinePlace& other, const LinePlace& trial) {
  const bool has_risen = trial.value > best.value, has_turned = trial.slope * std::copysign(1.0, best.slope) < 0;
  double next;
  if (has_risen) next = step_after_rise(best, trial);
  else if (has_turned) next = step_after_turn(best, trial);
  else next = safeguarded(best, other, trial);
  bracketed_ = bracketed_ || has_risen || has_turned;
  if (has_risen) {
    other = trial;
  } else {
    if (has_turned) other = best;
    best = trial;
  }
  step_ = next;
}

LineResult search_line(LineRules rules, const LinePlace& start, double first,
                       const std::function<LinePlace(double step)>& evaluate) {
  std::optional<LineSearch> search(std::in_place, rules, start, first);
  LinePlace best = start;
  for (int i = 0; i < rules.evaluations && std::isfinite(search->step()); ++i) {
    const LinePlace place = evaluate(search->step());
    if (!std::isfinite(place.value) || !std::isfinite(place.slope)) {
      if (place.step / 4 <= rules.least) break;
      rules.most = place.step;
      search.emplace(rules, start, place.step / 4);
      continue;
    }
    const LineSearch::State state = search->hear(place.value, place.slope);
    if (state == LineSearch::State::converged) return {place.step, true};
    const bool is_less = place.value <= start.value + place.step * rules.sufficient * start.slope;
    if (is_less && place.value < best.value) best = place;
    if (state == LineSearch::State::gave_up) break;
  }
  return {best.step, false};
}

}  // namespace gradus::detail::fitting
