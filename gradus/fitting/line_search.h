/// The line search of Moré and Thuente: a step that satisfies the strong Wolfe conditions
///   f(step) <= f(0) + sufficient * step * f'(0),  |f'(step)| <= curvature * |f'(0)|.
/// Reverse communication: it says where to evaluate, and hears what was found there.
/// J. J. Moré, D. J. Thuente: Line search algorithms with guaranteed sufficient decrease. ACM TOMS 20 (1994), 286-307.
#pragma once
#include <functional>

namespace gradus::detail::fitting {

struct LineRules {
  double sufficient, curvature;  // c1, c2
  double width;                  // relative width of the interval at which the search gives up
  double least, most;            // bounds on the step
  int evaluations;               // at most
};

/// A place on the line.
struct LinePlace {
  double step, value, slope;
};

class LineSearch {
 public:
  enum class State { evaluate, converged, gave_up };
  /// Begins at `start`, of step 0 and with a negative slope. `first`: the first step to try.
  LineSearch(const LineRules& rules, const LinePlace& start, double first);
  double step() const { return step_; }
  /// Hears the value and the slope at step().
  State hear(double value, double slope);

 private:
  void choose_next(const LinePlace& trial);
  double safeguarded(const LinePlace& best, const LinePlace& other, const LinePlace& trial) const;
  void narrow(LinePlace& best, LinePlace& other, const LinePlace& trial);

  const LineRules rules_;
  const LinePlace start_;
  const double enough_;  // slope of the line below which a value is a sufficient decrease
  double step_;
  LinePlace best_, other_;  // ends of the interval of uncertainty
  bool bracketed_ = false, first_stage_ = true;
  double low_ = 0, high_, width_, width_before_;
};

/// The result of a search: the step, or 0 if none was found.
struct LineResult {
  double step = 0;
  bool wolfe = false;  // both conditions hold; else the value is at least sufficiently less
};
/// Searches from `start`. `evaluate(step)` gives value and slope. A place that is not finite bounds the steps from then
/// on, and the search begins again with a quarter of it.
LineResult search_line(LineRules rules, const LinePlace& start, double first,
                       const std::function<LinePlace(double step)>& evaluate);

}  // namespace gradus::detail::fitting
