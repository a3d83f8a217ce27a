/// Penalties and constraints.
#include "gradus/nn/regularizers.h"
#include "gradus/base/ranges.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

constexpr double small = 1e-7;  // Keras's epsilon

void check_factor(std::string_view regularizer, double factor) {
  check_number(regularizer, "the factor", Allowed::not_negative("factor"), factor);
}

Tensor wide(const Tensor& x, std::string_view op) { return widened(require_floating(x, op)); }

/// Lengths along the axes. Where one is 0 so is its gradient.
Tensor lengths(const Tensor& x, const std::vector<int>& axis) { return norm(x, {.axis = axis, .keepdims = true}); }

}  // namespace

Tensor Regularizer::operator()(const Tensor& x) const {
  require(static_cast<bool>(f_), "regularizer: it is empty, so there is nothing to compute");
  Tensor penalty = f_(x);
  require(penalty.shape().rank() == 0 && is_floating(penalty.dtype()), "regularizer: of ", x.spec(), " it makes ",
          penalty.spec(), ", expected a scalar of a floating type; reduce_sum() makes one");
  return penalty;
}

namespace regularizers {

Tensor L1(const Tensor& x, double factor) { return cast(reduce_sum(abs(wide(x, "L1"))) * factor, x.dtype()); }
Tensor L2(const Tensor& x, double factor) { return cast(reduce_sum(square(wide(x, "L2"))) * factor, x.dtype()); }
Tensor L1L2(const Tensor& x, double of_l1, double of_l2) { return L1(x, of_l1) + L2(x, of_l2); }

Tensor OrthogonalRegularizer(const Tensor& x, double factor, OrthogonalMode mode) {
  require(x.shape().rank() == 2, "orthogonal: expected a matrix, got ", x.spec());
  const bool rows = mode == OrthogonalMode::rows;
  const std::int64_t n = x.shape()[rows ? 0 : 1];
  require(n >= 0, "orthogonal: the size of ", x.spec(), " must be known");
  const Tensor unit = l2_normalize(wide(x, "orthogonal"), {rows ? 1 : 0});
  const Tensor cosines = rows ? matmul(unit, transpose(unit)) : matmul(transpose(unit), unit);
  const double pairs = static_cast<double>(n) * static_cast<double>(n - 1) / 2;
  if (pairs == 0) return zeros({}, x.dtype());
  const Tensor between = abs(cosines) * (1 - eye(n, cosines.dtype()));
  return cast(reduce_sum(between) * (factor / 2 / pairs), x.dtype());
}

Regularizer L1(double factor) {
  check_factor("L1", factor);
  return [factor](const Tensor& x) { return l1(x, factor); };
}
Regularizer L2(double factor) {
  check_factor("L2", factor);
  return [factor](const Tensor& x) { return l2(x, factor); };
}
Regularizer L1L2(double of_l1, double of_l2) {
  check_factor("L1L2", of_l1);
  check_factor("L1L2", of_l2);
  return [of_l1, of_l2](const Tensor& x) { return l1_l2(x, of_l1, of_l2); };
}
Regularizer OrthogonalRegularizer(double factor, OrthogonalMode mode) {
  check_factor("OrthogonalRegularizer", factor);
  return [factor, mode](const Tensor& x) { return orthogonal(x, factor, mode); };
}

}  // namespace regularizers

namespace constraints {

Tensor max_norm(const Tensor& x, double max_value, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  check_number("max_norm", "max_value", Allowed::not_negative("max_value"), max_value);
  const Tensor w = wide(x, "max_norm"), length = lengths(w, axis);
  return cast(w * clip_by_value(length, 0, max_value) / (length + small), x.dtype());
}

Tensor min_max_norm(const Tensor& x, double min_value, double max_value, double rate, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  check_number("min_max_norm", "min_value", Allowed::not_negative("min_value"), min_value);
  check_number("min_max_norm", "max_value", Allowed::not_negative("max_value"), max_value);
  require(min_value <= max_value && rate >= 0 && rate <= 1,
          "min_max_norm: expected min_value <= max_value and a rate in "
          "[0, 1], got ",
          min_value, ", ", max_value, " and ", rate);
  const Tensor w = wide(x, "min_max_norm"), length = lengths(w, axis);
  const Tensor wanted = clip_by_value(length, min_value, max_value) * rate + length * (1 - rate);
  return cast(w * (wanted / (length + small)), x.dtype());
}

Tensor non_neg(const Tensor& x) { return maximum(x, 0); }

Tensor unit_norm(const Tensor& x, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  const Tensor w = wide(x, "unit_norm");
  return cast(w / (lengths(w, axis) + small), x.dtype());
}

}  // namespace constraints

}  // namespace gradus
