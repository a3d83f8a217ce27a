/// First values of variables, drawn from the global seed.
#include "gradus/nn/initializers.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/ranges.h"
#include <cmath>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"

namespace gradus::initializers {
namespace {

struct Fans {
  double in, out;
};

/// The fans of a kernel [..., inputs, outputs]: leading dimensions are a receptive field.
Fans fans_of(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  if (shape.rank() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1;
  for (int i = 0; i < shape.rank() - 2; ++i) field *= static_cast<double>(shape[i]);
  return {field * static_cast<double>(shape[-2]), field * static_cast<double>(shape[-1])};
}

Tensor within(const Shape& shape, double limit) { return random::uniform(shape, {.low = -limit, .high = limit}); }

/// Cutting a normal at two deviations leaves it this deviation.
constexpr double deviation_of_truncated = 0.87962566103423978;
Tensor truncated(const Shape& shape, double variance) {
  return random::truncated_normal(shape, {.stddev = std::sqrt(variance) / deviation_of_truncated});
}

/// Makes the `columns` columns of a matrix orthonormal, one after the other, each twice (Gram and Schmidt; once loses
/// orthogonality). Columns lie one after the other, of `rows` elements, rows >= columns.
void orthonormalize(std::vector<double>& a, std::size_t rows, std::size_t columns) {
  const auto dot = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < rows; ++k) sum += a[i * rows + k] * a[j * rows + k];
    return sum;
  };
  for (std::size_t j = 0; j < columns; ++j) {
    for (int round = 0; round < 2; ++round)
      for (std::size_t i = 0; i < j; ++i) {
        const double along = dot(i, j);
        for (std::size_t k = 0; k < rows; ++k) a[j * rows + k] -= along * a[i * rows + k];
      }
    const double length = std::sqrt(dot(j, j));
    for (std::size_t k = 0; k < rows; ++k) a[j * rows + k] /= length;
  }
}

}  // namespace

Tensor glorot_uniform(const Shape& shape) {
  const HostFloats floats;
  const Fans fans = fans_of(shape);
  return within(shape, std::sqrt(6 / (fans.in + fans.out)));
}
Tensor glorot_normal(const Shape& shape) {
  const HostFloats floats;
  const Fans fans = fans_of(shape);
  return truncated(shape, 2 / (fans.in + fans.out));
}
Tensor he_uniform(const Shape& shape) {
  const HostFloats floats;
  return within(shape, std::sqrt(6 / fans_of(shape).in));
}
Tensor he_normal(const Shape& shape) {
  const HostFloats floats;
  return truncated(shape, 2 / fans_of(shape).in);
}
Tensor lecun_uniform(const Shape& shape) {
  const HostFloats floats;
  return within(shape, std::sqrt(3 / fans_of(shape).in));
}
Tensor lecun_normal(const Shape& shape) {
  const HostFloats floats;
  return truncated(shape, 1 / fans_of(shape).in);
}

Tensor orthogonal(const Shape& shape) {
  const HostFloats floats;
  require(shape.rank() >= 2 && shape.size() > 0, "orthogonal: expected at least two dimensions with elements, got ",
          brackets(shape));
  const std::int64_t columns = shape.back(), rows = shape.size() / columns;
  const bool tall = rows >= columns;
  const std::int64_t longer = tall ? rows : columns, shorter = tall ? columns : rows;
  std::vector<double> a = random::normal({shorter, longer}, {.dtype = f64}).to_vector<double>();
  orthonormalize(a, static_cast<std::size_t>(longer), static_cast<std::size_t>(shorter));
  const Tensor q = cast(from_values(a, {shorter, longer}), f32);
  return reshape(tall ? transpose(q) : q, shape);
}

Tensor zeros(const Shape& shape) { return gradus::zeros(shape); }
Tensor ones(const Shape& shape) { return gradus::ones(shape); }

Initializer constant(double value) {
  check_number("initializers::constant", "the value", Allowed::finite("value"), value);
  return [value](const Shape& shape) { return full(shape, value); };
}
Initializer normal(double stddev) {
  check_number("initializers::normal", "stddev", Allowed::not_negative("stddev"), stddev);
  return [stddev](const Shape& shape) { return random::normal(shape, {.stddev = stddev}); };
}
Initializer uniform(double limit) {
  check_number("initializers::uniform", "the limit", Allowed::positive("limit"), limit);
  return [limit](const Shape& shape) { return within(shape, limit); };
}

}  // namespace gradus::initializers
