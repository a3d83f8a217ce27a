/// The parts that all methods of least_squares() share: the point where they are with its linearization, counts,
/// history, and the tests of a step.
#pragma once
#include <optional>
#include "gradus/fitting/evaluation.h"
#include "gradus/fitting/least_squares.h"
#include "gradus/fitting/linear_model.h"

namespace gradus::detail::fitting {

class FitState {
 public:
  FitState(LeastSquaresProblem problem, const Parameters& parameters);

  Vector x, residuals;  // where it is, and f there
  double cost = 0;
  // At x, with rows scaled by a robust loss.
  Matrix jacobian;
  Vector scaled_residuals, gradient;
  // Sizes of the parameters: a step p in scaled parameters is scale * p.
  Vector scale, scale_inverse;

  std::size_t size() const { return x.size(); }
  const LeastSquaresSettings& settings() const { return problem_.settings; }
  const Vector& lower() const { return problem_.lower; }
  const Vector& upper() const { return problem_.upper; }
  bool has_bounds() const { return bounded_; }
  bool is_within(const Vector& at) const;
  bool may_evaluate() const { return evaluator_.evaluations() < most_evaluations_; }
  double ftol() const { return settings().ftol.value_or(0); }
  double xtol() const { return settings().xtol.value_or(0); }
  double gtol() const { return settings().gtol.value_or(0); }

  /// Residuals at another place, and their cost; infinite if they are not finite.
  struct Trial {
    Vector x, residuals;
    double cost;
  };
  Trial trial_at(Vector at);
  /// Moves there and linearizes.
  void move_to(Trial trial);
  /// Counts an iteration and calls the callback. True: end here.
  bool finish_iteration();
  /// The model in parameters scaled by `d`, with curvature C.
  std::unique_ptr<LinearModel> model(const Vector& d, const Vector& curvature = {}) const;
  LeastSquaresFit ended(LeastSquaresStatus status, double optimality, std::vector<int> active);

 private:
  void linearize();
  void update_scale();

  LeastSquaresProblem problem_;
  Residuals evaluator_;
  int most_evaluations_;
  bool scales_by_jacobian_, bounded_;
  std::vector<double> history_;
};

/// How well a model has foretold a reduction.
struct RadiusUpdate {
  double radius, ratio;
};
RadiusUpdate radius_after(double radius, double actual, double predicted, double step_length, bool hits_edge);
/// The tests of ftol and xtol.
std::optional<LeastSquaresStatus> end_after(double reduction, double cost, double step, double size, double ratio,
                                            double ftol, double xtol);

/// Half the curvature and the slope of a model along s: a t^2 + b t.
struct Parabola {
  double a, b;
};
struct ParabolaMinimum {
  double t, value;
};
ParabolaMinimum minimum_within(const Parabola& parabola, double low, double high, double constant = 0);
/// The largest t with low <= x + t s <= high, and the bounds that stop it: -1, 0, 1.
struct RoomOnLine {
  double step;
  std::vector<int> hits;
};
RoomOnLine room_on_line(const Vector& x, const Vector& s, const Vector& low, const Vector& high);

/// x moved from bounds by at least `distance` of their size; with 0 by the least difference of doubles.
Vector strictly_within(Vector x, const Vector& low, const Vector& high, double distance);
/// For each parameter the bound at which it is, up to `tolerance` of its size: -1, 0, 1.
std::vector<int> active_bounds(const Vector& x, const Vector& low, const Vector& high, double tolerance);

LeastSquaresFit by_trust_region(FitState& state);
LeastSquaresFit by_dogbox(FitState& state);
LeastSquaresFit by_levenberg_marquardt(FitState& state);

}  // namespace gradus::detail::fitting
