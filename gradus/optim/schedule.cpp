/// Schedules are computed in f64, whatever the variables are: they are one number a step.
#include "gradus/optim/schedule.h"
#include <cmath>
#include <numbers>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// A number as structure, exact in f64 (a bare double literal of `constant` would become f32).
Tensor number(double value) { return fill({}, value, f64); }

Tensor cosine_decay(const Tensor& step, const CosineDecayOptions& o) {
  const bool warms = o.warmup_steps > 0;
  const double peak = warms ? o.warmup_target : o.initial_learning_rate;
  const Tensor t = cast(step, f64);
  const Tensor done = clip_by_value((t - number(o.warmup_steps)) / number(o.decay_steps), 0.0, 1.0);
  const Tensor wave = number(0.5) * (number(1) + cos(number(std::numbers::pi) * done));
  const Tensor decayed = number(peak) * (number(1 - o.alpha) * wave + number(o.alpha));
  if (!warms) return decayed;
  const Tensor warming =
      number(o.initial_learning_rate) + number(peak - o.initial_learning_rate) * (t / number(o.warmup_steps));
  return where(t < number(o.warmup_steps), warming, decayed);
}

Tensor exponential_decay(const Tensor& step, const ExponentialDecayOptions& o) {
  Tensor exponent = cast(step, f64) / number(o.decay_steps);
  if (o.staircase) exponent = floor(exponent);
  return number(o.initial_learning_rate) * pow(number(o.decay_rate), exponent);
}

Tensor piecewise_constant(const Tensor& step, const std::vector<std::int64_t>& boundaries,
                          const std::vector<double>& values) {
  Tensor rate = number(values.back());
  for (std::size_t i = boundaries.size(); i-- > 0;)
    rate = where(step <= fill({}, boundaries[i], i64), number(values[i]), rate);
  return rate;
}

CosineDecayOptions checked(CosineDecayOptions o) {
  require(o.decay_steps > 0, "CosineDecay: decay_steps must be positive, got ", o.decay_steps);
  require(o.warmup_steps >= 0, "CosineDecay: warmup_steps must not be negative, got ", o.warmup_steps);
  return o;
}
ExponentialDecayOptions checked(ExponentialDecayOptions o) {
  require(o.decay_steps > 0, "ExponentialDecay: decay_steps must be positive, got ", o.decay_steps);
  require(o.decay_rate > 0, "ExponentialDecay: decay_rate must be positive, got ", o.decay_rate);
  return o;
}

}  // namespace

Tensor Schedule::at(const Tensor& step) const {
  if (is_constant()) return number(constant_);
  const Tensor rate = function_(step);
  require(is_floating(rate.dtype()) && rate.shape().size() == 1, "Schedule: its function gave ", rate.spec(),
          ", expected a floating scalar");
  return reshape(rate.dtype() == f64 ? rate : cast(rate, f64), {});
}

double Schedule::operator()(std::int64_t step) const {
  return is_constant() ? constant_ : at(gradus::constant(step, i64)).item();
}

CosineDecay::CosineDecay(CosineDecayOptions options)
    : Schedule([o = checked(options)](const Tensor& step) { return cosine_decay(step, o); }) {}

ExponentialDecay::ExponentialDecay(ExponentialDecayOptions options)
    : Schedule([o = checked(options)](const Tensor& step) { return exponential_decay(step, o); }) {}

PiecewiseConstantDecay::PiecewiseConstantDecay(std::vector<std::int64_t> boundaries, std::vector<double> values)
    : Schedule([boundaries, values](const Tensor& step) { return piecewise_constant(step, boundaries, values); }) {
  require(values.size() == boundaries.size() + 1, "PiecewiseConstantDecay: ", boundaries.size(),
          " boundaries need one value more, got ", values.size());
  for (std::size_t i = 1; i < boundaries.size(); ++i)
    require(boundaries[i - 1] < boundaries[i], "PiecewiseConstantDecay: boundaries must rise, got ", boundaries[i - 1],
            " before ", boundaries[i]);
}

}  // namespace gradus
