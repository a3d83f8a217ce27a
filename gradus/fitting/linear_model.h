/// The model of least squares at one point: residuals f + J p in scaled parameters p, and a further curvature C of
/// each, which bounds add:  |f + J p|^2 / 2 + p' C p / 2.
#pragma once
#include <memory>
#include "gradus/fitting/dense.h"

namespace gradus::detail::fitting {

/// A step p(alpha) = -(J'J + C + alpha I)^-1 J'f, and how its length changes.
struct DampedStep {
  Vector p;
  double length, slope;  // |p|, and d|p| / d alpha (negative)
};

class LinearModel {
 public:
  virtual ~LinearModel() = default;
  /// True if the step without damping exists.
  virtual bool has_full_rank() const = 0;
  /// alpha is above 0 unless the rank is full.
  virtual DampedStep damped(double alpha) const = 0;
  /// The shortest step to the minimum of the model.
  virtual Vector newton_step() const = 0;
  /// a' (J'J) b, without C.
  virtual double product(const Vector& a, const Vector& b) const = 0;
};

/// The model of J [m, n], f [m] and C [n] (empty: none). Singular values solve small problems, which keeps all digits;
/// normal equations solve large ones, by the products and Cholesky factors of ops on all threads.
std::unique_ptr<LinearModel> linear_model(Matrix jacobian, Vector residuals, const Vector& gradient,
                                          const Vector& curvature);
/// True if the model of such a problem is of singular values.
bool is_small_model(std::size_t residuals, std::size_t parameters);

/// (J'J)^-1, or its pseudoinverse, and the rank of J: directions whose singular value is below `tolerance` of the
/// largest do not count.
struct InverseGram {
  Matrix inverse;
  std::size_t rank;
};
InverseGram inverse_gram(const Matrix& jacobian);

/// The step of length `radius` at most that minimizes the model, by Newton's method on its length (Moré 1978).
struct RegionStep {
  Vector p;
  double alpha;
};
RegionStep step_in_region(const LinearModel& model, const Vector& gradient, double radius, double first_alpha);

}  // namespace gradus::detail::fitting
