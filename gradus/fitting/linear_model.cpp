/// Two forms of the model, and the step in a region of trust.
#include "gradus/fitting/linear_model.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/ops/constant.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/solve.h"

namespace gradus::detail::fitting {
namespace {

constexpr double epsilon_of_rank = std::numeric_limits<double>::epsilon();

/// J with the rows of the root of C below it.
Matrix augmented(Matrix jacobian, const Vector& curvature) {
  const std::size_t m = jacobian.rows;
  if (curvature.empty()) return jacobian;
  jacobian.rows += curvature.size();
  jacobian.values.resize(jacobian.rows * jacobian.columns);
  for (std::size_t i = 0; i < curvature.size(); ++i) jacobian(m + i, i) = std::sqrt(std::max(curvature[i], 0.0));
  return jacobian;
}

class SpectralModel : public LinearModel {
 public:
  SpectralModel(const Matrix& jacobian, Vector residuals, const Vector& curvature)
      : curvature_(curvature), rows_(jacobian.rows) {
    residuals.resize(rows_ + curvature.size());
    parts_ = singular_values(augmented(jacobian, curvature), std::move(residuals));
  }
  bool has_full_rank() const override {
    const Vector& s = parts_.values;
    return rows_ >= parts_.right.columns && s.back() > epsilon_of_rank * static_cast<double>(rows_) * s.front();
  }
  DampedStep damped(double alpha) const override {
    DampedStep step{Vector(parts_.right.columns), 0, 0};
    double square = 0, cube = 0;
    for (std::size_t i = 0; i < parts_.values.size(); ++i) {
      const double s = parts_.values[i], below = s * s + alpha;
      if (!(below > 0)) continue;
      const double along = s * parts_.along[i] / below;
      square += along * along;
      cube += along * along / below;
      add(step.p.data(), -along, parts_.right.row(i), step.p.size());
    }
    step.length = std::sqrt(square);
    step.slope = square > 0 ? -cube / step.length : 0;
    return step;
  }
  Vector newton_step() const override {
    Vector p(parts_.right.columns);
    const double least = epsilon_of_rank * static_cast<double>(std::max(rows_, p.size())) * parts_.values.front();
    for (std::size_t i = 0; i < parts_.values.size(); ++i)
      if (parts_.values[i] > least) add(p.data(), -parts_.along[i] / parts_.values[i], parts_.right.row(i), p.size());
    return p;
  }
  double product(const Vector& a, const Vector& b) const override {
    double sum = 0;
    for (std::size_t i = 0; i < parts_.values.size(); ++i) {
      const double s = parts_.values[i];
      sum += s * s * dot(parts_.right.row(i), a.data(), a.size()) * dot(parts_.right.row(i), b.data(), b.size());
    }
    for (std::size_t i = 0; i < curvature_.size(); ++i) sum -= curvature_[i] * a[i] * b[i];
    return sum;
  }

 private:
  SingularValues parts_;
  const Vector curvature_;
  const std::size_t rows_;
};

Tensor column_of(const Vector& v) {
  return from_values(std::span<const double>(v), {static_cast<std::int64_t>(v.size()), 1});
}
Tensor square_of(const Matrix& a) {
  return from_values(std::span<const double>(a.values),
                     {static_cast<std::int64_t>(a.rows), static_cast<std::int64_t>(a.columns)});
}
Matrix gram_of(const Matrix& jacobian) {
  const Tensor j = square_of(jacobian);
  Matrix gram;
  gram.rows = gram.columns = jacobian.columns;
  gram.values = matmul(j, j, {.transpose_a = true}).to_vector<double>();
  return gram;
}

class NormalModel : public LinearModel {
 public:
  NormalModel(const Matrix& jacobian, const Vector& gradient, const Vector& curvature)
      : gram_(gram_of(jacobian)), gradient_(gradient), curvature_(curvature) {
    if (jacobian.rows < jacobian.columns) return;
    newton_ = solve_with(0);
    full_rank_ = all_finite(newton_.p) && newton_.least_pivot > 10 * epsilon_of_rank * static_cast<double>(gram_.rows);
  }
  bool has_full_rank() const override { return full_rank_; }
  DampedStep damped(double alpha) const override { return alpha == 0 ? newton_ : solve_with(alpha); }
  Vector newton_step() const override {
    if (full_rank_) return newton_.p;
    double size = 0;
    for (std::size_t i = 0; i < gram_.rows; ++i) size = std::max(size, gram_(i, i));
    return solve_with(size * epsilon_of_rank * static_cast<double>(gram_.rows)).p;
  }
  double product(const Vector& a, const Vector& b) const override { return dot(a, times(gram_, b)); }

 private:
  struct Solved : DampedStep {
    double least_pivot;  // of the factor, relative to the diagonal: about rounding if the matrix is singular
  };
  Solved solve_with(double alpha) const {
    Matrix damped = gram_;
    for (std::size_t i = 0; i < damped.rows; ++i) damped(i, i) += alpha + (curvature_.empty() ? 0 : curvature_[i]);
    const Tensor factor = cholesky(square_of(damped));
    const Tensor p = -cholesky_solve(factor, column_of(gradient_));
    const Tensor w = reduce_sum(square(triangular_solve(factor, p)));  // p' (J'J + C + alpha)^-1 p
    const Tensor pivots = square(diag_part(factor)) / diag_part(square_of(damped));
    Solved step{{p.to_vector<double>(), 0, 0}, reduce_min(pivots).item()};
    step.length = norm(step.p);
    step.slope = step.length > 0 ? -w.item() / step.length : 0;
    return step;
  }

  const Matrix gram_;
  const Vector gradient_, curvature_;
  bool full_rank_ = false;
  Solved newton_{};
};

}  // namespace

bool is_small_model(std::size_t residuals, std::size_t parameters) {
  return parameters <= 64 && residuals * parameters * parameters <= 20'000'000;
}

std::unique_ptr<LinearModel> linear_model(Matrix jacobian, Vector residuals, const Vector& gradient,
                                          const Vector& curvature) {
  if (is_small_model(jacobian.rows, jacobian.columns))
    return std::make_unique<SpectralModel>(jacobian, std::move(residuals), curvature);
  return std::make_unique<NormalModel>(jacobian, gradient, curvature);
}

InverseGram inverse_gram(const Matrix& jacobian) {
  const std::size_t n = jacobian.columns;
  InverseGram result{Matrix(n, n), 0};
  if (is_small_model(jacobian.rows, n)) {
    const SingularValues parts = singular_values(jacobian, Vector(jacobian.rows));
    const double least = epsilon_of_rank * static_cast<double>(std::max(jacobian.rows, n)) * parts.values.front();
    for (std::size_t i = 0; i < parts.values.size(); ++i) {
      if (!(parts.values[i] > least)) continue;
      ++result.rank;
      const double* const v = parts.right.row(i);
      const double weight = 1 / (parts.values[i] * parts.values[i]);
      for (std::size_t j = 0; j < n; ++j) add(result.inverse.row(j), weight * v[j], v, n);
    }
    return result;
  }
  Matrix unit(n, n);
  for (std::size_t i = 0; i < n; ++i) unit(i, i) = 1;
  result.inverse.values = cholesky_solve(cholesky(square_of(gram_of(jacobian))), square_of(unit)).to_vector<double>();
  result.rank = jacobian.rows >= n && all_finite(result.inverse.values) ? n : 0;
  return result;
}

RegionStep step_in_region(const LinearModel& model, const Vector& gradient, double radius, double first_alpha) {
  const bool full = model.has_full_rank();
  double low = 0, high = norm(gradient) / radius;
  if (full) {
    const DampedStep newton = model.damped(0);
    if (newton.length <= radius) return {newton.p, 0};
    low = -(newton.length - radius) / newton.slope;
  } else {
    Vector shortest = model.newton_step();  // SciPy goes to the edge of the region instead, past the minimum
    if (all_finite(shortest) && norm(shortest) <= radius) return {std::move(shortest), 0};
  }
  const auto middle = [&] { return std::max(0.001 * high, std::sqrt(low * high)); };
  double alpha = !full && first_alpha == 0 ? middle() : first_alpha;
  constexpr int most = 10;
  for (int i = 0; i < most; ++i) {
    if (alpha < low || alpha > high) alpha = middle();
    const DampedStep step = model.damped(alpha);
    const double over = step.length - radius, ratio = over / step.slope;
    if (over < 0) high = alpha;
    low = std::max(low, alpha - ratio);
    alpha -= (over + radius) * ratio / radius;
    if (std::abs(over) < 0.01 * radius) break;
  }
  DampedStep last = model.damped(alpha);
  const double factor = last.length > 0 ? radius / last.length : 0;
  return {scaled(std::move(last.p), factor), alpha};
}

}  // namespace gradus::detail::fitting
