/// Schedules are computed in f64, whatever the dtype of the variables: they are one number per step.
#include "gradus/optim/schedule.h"
#include <cmath>
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random_state.h"
#include "gradus/ops/shape.h"
#include "gradus/optim/option_text.h"
#include "gradus/optim/update_rule.h"

namespace gradus {
namespace {

using detail::number;

/// A number as structure, exact in f64 (a bare double literal of `constant` would become f32).

/// 1 at 0, 0 at 1.
Tensor half_cosine(const Tensor& done) { return number(0.5) * (number(1) + cos(number(std::numbers::pi) * done)); }

Tensor cosine_decay(const Tensor& step, const CosineDecayOptions& o) {
  const bool warms = o.warmup_steps > 0;
  const double peak = warms ? o.warmup_target : o.initial_learning_rate;
  const Tensor t = cast(step, f64);
  const Tensor done = clip_by_value((t - number(o.warmup_steps)) / number(o.decay_steps), 0.0, 1.0);
  const Tensor decayed = number(peak) * (number(1 - o.alpha) * half_cosine(done) + number(o.alpha));
  if (!warms) return decayed;
  const Tensor warming =
      number(o.initial_learning_rate) + number(peak - o.initial_learning_rate) * (t / number(o.warmup_steps));
  return where(t < number(o.warmup_steps), warming, decayed);
}

/// The number of the period and the part of it that is done, in units of the first one. The logarithm may round to the
/// neighbour of the period where one ends; comparing with the periods' true beginnings mends that.
Tensor cosine_decay_restarts(const Tensor& step, const CosineDecayRestartsOptions& o) {
  const Tensor time = cast(step, f64) / number(o.first_decay_steps);
  Tensor period = floor(time), done = time - period;
  if (o.t_mul > 1) {
    const auto begin_of = [&](const Tensor& i) { return (pow(number(o.t_mul), i) - number(1)) / number(o.t_mul - 1); };
    period = floor(log1p(time * number(o.t_mul - 1)) / number(std::log(o.t_mul)));
    period = where(begin_of(period) > time, period - number(1), period);
    period = where(begin_of(period + number(1)) <= time, period + number(1), period);
    done = (time - begin_of(period)) / pow(number(o.t_mul), period);
  }
  const Tensor wave = pow(number(o.m_mul), period) * half_cosine(done);
  return number(o.initial_learning_rate) * (number(1 - o.alpha) * wave + number(o.alpha));
}

Tensor polynomial_decay(const Tensor& step, const PolynomialDecayOptions& o) {
  const Tensor t = cast(step, f64), periods = t / number(o.decay_steps);
  const Tensor done = o.cycle ? periods / maximum(ceil(periods), number(1)) : minimum(periods, number(1));
  const Tensor left = pow(number(1) - done, number(o.power));
  return number(o.initial_learning_rate - o.end_learning_rate) * left + number(o.end_learning_rate);
}

Tensor inverse_time_decay(const Tensor& step, const InverseTimeDecayOptions& o) {
  Tensor periods = cast(step, f64) / number(o.decay_steps);
  if (o.staircase) periods = floor(periods);
  return number(o.initial_learning_rate) / (number(1) + number(o.decay_rate) * periods);
}

Tensor one_cycle(const Tensor& step, const OneCycleOptions& o) {
  const Tensor t = cast(step, f64);
  const double first = o.max_learning_rate / o.div_factor, last = first / o.final_div_factor;
  const double end = static_cast<double>(o.total_steps) - 1;
  const double turn = o.pct_start * static_cast<double>(o.total_steps) - 1;
  const auto from_to = [&](double a, double b, const Tensor& done) {
    const Tensor left = o.linear ? number(1) - done : half_cosine(done);
    return number(b) + number(a - b) * left;
  };
  const Tensor down =
      from_to(o.max_learning_rate, last, clip_by_value((t - number(turn)) / number(end - turn), 0.0, 1.0));
  if (turn <= 0) return down;
  return where(t <= number(turn), from_to(first, o.max_learning_rate, t / number(turn)), down);
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
  check_options("CosineDecay", o);
  require(o.warmup_steps == 0 || o.warmup_target != 0, "CosineDecay: warmup_steps is ", o.warmup_steps,
          ", but no warmup_target says where the rate rises to");
  return o;
}

/// "CosineDecay(initial_learning_rate 0.1, decay_steps 100, alpha 0, ...)"
template <class Options> std::string described(std::string_view name, const Options& options) {
  return text(name, '(', options_text(options), ')');
}

template <class T> std::string list_of(const std::vector<T>& values) {
  std::string all;
  for (const T value : values) all += (all.empty() ? "" : " ") + option_text(value);
  return all;
}

/// The text of a user's function: its rates at early steps and at those of long trainings.
std::string rates_of(const Schedule& schedule) {
  constexpr std::int64_t steps[] = {0, 1, 2, 5, 10, 100, 1000, 10'000, 100'000};
  std::uint64_t own_numbers = 0;
  const SeedScope seeds(own_numbers);
  std::string rates;
  try {
    for (const std::int64_t step : steps) rates += (rates.empty() ? "" : " ") + option_text(schedule(step));
  } catch (const Error&) { return "a function of the step"; }
  return text("a function of the step (", rates, " at steps 0 1 2 5 10 100 1000 10000 100000)");
}

}  // namespace

std::string Schedule::description() const {
  if (is_constant()) return option_text(constant_);
  return description_.empty() ? rates_of(*this) : description_;
}

Tensor Schedule::at(const Tensor& step) const {
  const HostFloats floats;
  if (is_constant()) return number(constant_);
  const Tensor rate = function_(step);
  require(is_floating(rate.dtype()) && rate.shape().size() == 1, "Schedule: its function gave ", rate.spec(),
          ", expected a floating scalar");
  return reshape(rate.dtype() == f64 ? rate : cast(rate, f64), {});
}

double Schedule::operator()(std::int64_t step) const {
  const HostFloats floats;
  return is_constant() ? constant_ : at(gradus::constant(step, i64)).item();
}

CosineDecay::CosineDecay(CosineDecayOptions options)
    : Schedule(described("CosineDecay", options),
               [o = checked(options)](const Tensor& step) { return cosine_decay(step, o); }) {}

CosineDecayRestarts::CosineDecayRestarts(CosineDecayRestartsOptions options)
    : Schedule(described("CosineDecayRestarts", options),
               [o = checked_options("CosineDecayRestarts", options)](const Tensor& step) {
                 return cosine_decay_restarts(step, o);
               }) {}

PolynomialDecay::PolynomialDecay(PolynomialDecayOptions options)
    : Schedule(described("PolynomialDecay", options), [o = checked_options("PolynomialDecay", options)](
                                                          const Tensor& step) { return polynomial_decay(step, o); }) {}

InverseTimeDecay::InverseTimeDecay(InverseTimeDecayOptions options)
    : Schedule(described("InverseTimeDecay", options),
               [o = checked_options("InverseTimeDecay", options)](const Tensor& step) {
                 return inverse_time_decay(step, o);
               }) {}

OneCycle::OneCycle(OneCycleOptions options)
    : Schedule(described("OneCycle", options),
               [o = checked_options("OneCycle", options)](const Tensor& step) { return one_cycle(step, o); }) {}

ExponentialDecay::ExponentialDecay(ExponentialDecayOptions options)
    : Schedule(described("ExponentialDecay", options), [o = checked_options("ExponentialDecay", options)](
                                                           const Tensor& step) { return exponential_decay(step, o); }) {
}

PiecewiseConstantDecay::PiecewiseConstantDecay(std::vector<std::int64_t> boundaries, std::vector<double> values)
    : Schedule(text("PiecewiseConstantDecay(boundaries ", list_of(boundaries), ", values ", list_of(values), ')'),
               [boundaries, values](const Tensor& step) { return piecewise_constant(step, boundaries, values); }) {
  require(values.size() == boundaries.size() + 1, "PiecewiseConstantDecay: ", boundaries.size(),
          " boundaries need one value more, got ", values.size());
  for (double value : values) check_number("PiecewiseConstantDecay", "a value", Allowed::not_negative("values"), value);
  for (std::size_t i = 1; i < boundaries.size(); ++i)
    require(boundaries[i - 1] < boundaries[i], "PiecewiseConstantDecay: boundaries must rise, got ", boundaries[i - 1],
            " before ", boundaries[i]);
}

}  // namespace gradus
