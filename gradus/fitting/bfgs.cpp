/// BFGS: an estimate H of the inverse Hessian, of n^2 numbers, updated by each step s and change of gradient y
/// (Nocedal and Wright, Numerical Optimization, section 6.1).
#include <cmath>
#include "gradus/base/rooms.h"
#include "gradus/fitting/descent.h"

namespace gradus::detail::fitting {
namespace {

Matrix identity(std::size_t n) {
  Matrix result(n, n);
  for (std::size_t i = 0; i < n; ++i) result(i, i) = 1;
  return result;
}

/// H = (I - r s y') H (I - r y s') + r s s' with r = 1 / s'y, in n^2 steps: H is symmetric.
void update_inverse(Matrix& h, const Vector& s, const Vector& y) {
  const double curvature = dot(s, y);
  if (!(curvature > 0)) return;  // a step without the Wolfe conditions: H stays positive definite
  const Vector hy = times(h, y);
  const double r = 1 / curvature, of_s = r * (1 + r * dot(y, hy));
  for (std::size_t i = 0; i < h.rows; ++i) {
    add(h.row(i), of_s * s[i] - r * hy[i], s.data(), h.columns);
    add(h.row(i), -r * s[i], hy.data(), h.columns);
  }
}

}  // namespace

Minimum by_bfgs(Descent& descent) {
  const std::size_t n = descent.at.x.size();
  const MinimizeSettings& settings = descent.settings();
  const double gtol = settings.gtol.value_or(settings.tol.value_or(1e-5));
  const int maxiter = settings.maxiter.value_or(times_as_int(200, n));
  Matrix inverse = identity(n);
  const auto ended = [&](MinimizeStatus status) {
    Minimum result = descent.ended(status);
    result.inverse = std::move(inverse);
    return result;
  };
  while (largest(descent.at.gradient) > gtol) {
    const Place before = descent.at;
    if (!descent.move_along(scaled(times(inverse, before.gradient), -1))) return ended(MinimizeStatus::precision_loss);
    update_inverse(inverse, difference(descent.at.x, before.x), difference(descent.at.gradient, before.gradient));
    if (const auto end = descent.finish_iteration(maxiter)) {
      const bool reached = *end == MinimizeStatus::max_iterations && largest(descent.at.gradient) <= gtol;
      return ended(reached ? MinimizeStatus::small_gradient : *end);
    }
  }
  return ended(MinimizeStatus::small_gradient);
}

}  // namespace gradus::detail::fitting
