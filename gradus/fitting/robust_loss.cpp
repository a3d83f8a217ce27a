/// The losses with their derivatives by z, as SciPy has them.
#include "gradus/fitting/robust_loss.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/fitting/least_squares.h"

namespace gradus::detail::fitting {
namespace {

/// rho, rho' and rho'' at z.
struct LossAt {
  double value, first, second;
};
LossAt loss_at(RobustLoss loss, double z) {
  switch (loss) {
    case RobustLoss::soft_l1: {
      const double root = std::sqrt(1 + z);
      return {2 * (root - 1), 1 / root, -0.5 / (root * (1 + z))};
    }
    case RobustLoss::huber: {
      if (z <= 1) return {z, 1, 0};
      const double root = std::sqrt(z);
      return {2 * root - 1, 1 / root, -0.5 / (root * z)};
    }
    case RobustLoss::cauchy: return {std::log1p(z), 1 / (1 + z), -1 / ((1 + z) * (1 + z))};
    case RobustLoss::arctan: {
      const double t = 1 + z * z;
      return {std::atan(z), 1 / t, -2 * z / (t * t)};
    }
    default: return {z, 1, 0};
  }
}

}  // namespace

double cost_of(const Vector& residuals, RobustLoss loss, double scale) {
  if (loss == RobustLoss::linear) return 0.5 * dot(residuals, residuals);
  double sum = 0;
  for (const double f : residuals) sum += loss_at(loss, (f / scale) * (f / scale)).value;
  return 0.5 * scale * scale * sum;
}

void scale_rows(Matrix& jacobian, Vector& residuals, RobustLoss loss, double scale) {
  if (loss == RobustLoss::linear) return;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double f = residuals[i], z = (f / scale) * (f / scale);
    const LossAt at = loss_at(loss, z);
    const double curvature = at.first + 2 * at.second * z;
    const double factor = std::sqrt(std::max(curvature, std::numeric_limits<double>::epsilon()));
    residuals[i] = f * at.first / factor;
    double* const row = jacobian.row(i);
    for (std::size_t j = 0; j < jacobian.columns; ++j) row[j] *= factor;
  }
}

}  // namespace gradus::detail::fitting
