/// The parts that all methods of minimize() share: the point where they are, counts, history, the ends that do not
/// depend on the method.
#pragma once
#include <optional>
#include "gradus/fitting/evaluation.h"
#include "gradus/fitting/line_search.h"
#include "gradus/fitting/minimize.h"

namespace gradus::detail::fitting {

/// A place with what was evaluated there.
struct Place {
  Vector x, gradient;
  double value = 0;
};

class Descent {
 public:
  Descent(MinimizeProblem problem, const Parameters& parameters);

  Place at;      // where it is now
  Place before;  // where it was before the last search
  const Vector& lower() const { return problem_.lower; }
  const Vector& upper() const { return problem_.upper; }
  double bound_towards(std::size_t i, double direction) const { return direction > 0 ? upper()[i] : lower()[i]; }
  bool has_bounds() const { return problem_.has_bounds; }
  const MinimizeSettings& settings() const { return problem_.settings; }
  Objective& objective() { return objective_; }
  int iterations() const { return static_cast<int>(history_.size()) - 1; }

  /// The value and the gradient at x.
  Place evaluate(Vector x);
  /// Searches along `direction`, where the value has this slope, from the step `first` on; place(step) gives x. Moves
  /// to the place that it finds; a step of 0: none, and it has not moved.
  LineResult search(const LineRules& rules, const Vector& direction, double slope, double first,
                    const std::function<Vector(double step)>& place);
  /// Counts an iteration that has moved to `at`, and calls the callback. The reason to end, if there is one.
  std::optional<MinimizeStatus> finish_iteration(int maxiter);
  /// Moves along `direction` to a place that satisfies the strong Wolfe conditions, as bfgs and newton_cg of SciPy do,
  /// or that is at least sufficiently lower. False if that gains nothing, or if there is none.
  bool move_along(const Vector& direction);
  Minimum ended(MinimizeStatus status);

 private:
  MinimizeProblem problem_;
  Objective objective_;
  std::vector<double> history_;
  std::optional<double> value_before_;  // one iteration ago
};

Minimum by_bfgs(Descent& descent);
Minimum by_l_bfgs_b(Descent& descent);
Minimum by_newton_cg(Descent& descent);

}  // namespace gradus::detail::fitting
