/// Robust losses rho of squared residuals z = (f / f_scale)^2, with rho(z) = z for small z. The cost is
/// f_scale^2 sum(rho(z)) / 2.
#pragma once
#include "gradus/fitting/dense.h"

namespace gradus {

enum class RobustLoss;

namespace detail::fitting {

/// The cost of residuals.
double cost_of(const Vector& residuals, RobustLoss loss, double scale);
/// Scales rows of J and residuals so that J'J and J'f are those of the cost, its Hessian without the second derivatives
/// of the residuals (Triggs et al., Bundle Adjustment, section 4.3).
void scale_rows(Matrix& jacobian, Vector& residuals, RobustLoss loss, double scale);

}  // namespace detail::fitting
}  // namespace gradus
