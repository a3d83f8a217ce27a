/// First values, drawn from the global seed.
#include "gradus/nn/initializers.h"
#include <cmath>
#include "gradus/ops/constant.h"
#include "gradus/ops/random.h"

namespace gradus::initializers {
namespace {

struct Fans {
  double in, out;
};

/// Of a kernel [..., inputs, outputs]: leading dimensions are a receptive field.
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

}  // namespace

Tensor glorot_uniform(const Shape& shape) {
  const Fans fans = fans_of(shape);
  return within(shape, std::sqrt(6 / (fans.in + fans.out)));
}
Tensor glorot_normal(const Shape& shape) {
  const Fans fans = fans_of(shape);
  return truncated(shape, 2 / (fans.in + fans.out));
}
Tensor he_uniform(const Shape& shape) { return within(shape, std::sqrt(6 / fans_of(shape).in)); }
Tensor he_normal(const Shape& shape) { return truncated(shape, 2 / fans_of(shape).in); }
Tensor lecun_uniform(const Shape& shape) { return within(shape, std::sqrt(3 / fans_of(shape).in)); }
Tensor lecun_normal(const Shape& shape) { return truncated(shape, 1 / fans_of(shape).in); }
Tensor zeros(const Shape& shape) { return gradus::zeros(shape); }
Tensor ones(const Shape& shape) { return gradus::ones(shape); }

Initializer constant(double value) {
  return [value](const Shape& shape) { return full(shape, value); };
}
Initializer normal(double stddev) {
  return [stddev](const Shape& shape) { return random::normal(shape, {.stddev = stddev}); };
}
Initializer uniform(double limit) {
  return [limit](const Shape& shape) { return within(shape, limit); };
}

}  // namespace gradus::initializers
