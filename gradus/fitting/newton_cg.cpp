/// Newton's method with truncated conjugate gradients, which need products with the Hessian alone (Nocedal and Wright,
/// Numerical Optimization, algorithm 7.1, with the tests of SciPy).
#include <cmath>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/fitting/descent.h"

namespace gradus::detail::fitting {
namespace {

/// An inexact solution p of H p = -g; empty if conjugate gradients do not end.
Vector newton_direction(Descent& descent) {
  const Vector& g = descent.at.gradient;
  const std::size_t n = g.size();
  const double size = total(g), enough = std::min(0.5, std::sqrt(size)) * size;
  Vector p(n), rest = g, along = scaled(g, -1);
  double square = dot(rest, rest);
  for (std::size_t i = 0; i < 20 * n; ++i) {
    if (total(rest) <= enough) return p;
    const Vector h = descent.objective().hessian_product(descent.at.x, along);
    const double curvature = dot(along, h);
    if (!std::isfinite(curvature)) return i > 0 ? p : scaled(g, -1);
    if (curvature >= 0 && curvature <= 3 * std::numeric_limits<double>::epsilon()) return p;
    if (curvature < 0) return i > 0 ? p : scaled(g, square / curvature);  // steepest descent
    const double step = square / curvature;
    add(p, step, along);
    add(rest, step, h);
    const double next = dot(rest, rest);
    along = scaled(std::move(along), next / square);
    add(along, -1, rest);
    square = next;
  }
  return {};
}

}  // namespace

Minimum by_newton_cg(Descent& descent) {
  const std::size_t n = descent.at.x.size();
  const MinimizeSettings& settings = descent.settings();
  const double xtol = static_cast<double>(n) * settings.xtol.value_or(settings.tol.value_or(1e-5));
  const int maxiter = settings.maxiter.value_or(times_as_int(200, n));
  for (;;) {
    const Vector direction = newton_direction(descent);
    if (direction.empty()) return descent.ended(MinimizeStatus::not_positive_definite);
    if (largest(descent.at.gradient) == 0) return descent.ended(MinimizeStatus::small_step);
    const Vector before = descent.at.x;
    if (!descent.move_along(direction)) return descent.ended(MinimizeStatus::precision_loss);
    const auto end = descent.finish_iteration(maxiter);
    if (end == MinimizeStatus::stopped) return descent.ended(*end);
    if (total(difference(descent.at.x, before)) <= xtol) return descent.ended(MinimizeStatus::small_step);
    if (end) return descent.ended(*end);
  }
}

}  // namespace gradus::detail::fitting
