/// Gamma and beta numbers: the logarithm of a gamma number by rejection in a loop, each attempt of each element with
/// bits of its own, and its implicit gradient.
#include <cmath>
#include <limits>
#include <numbers>
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/incomplete.h"
#include "gradus/ops/incomplete_ops.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/random_draws.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"

namespace gradus {
namespace {

/// The derivative by alpha of y = log z, with z a gamma number and P(alpha, z) held:
/// -(dP/dalpha) / (z dP/dz). For z near 0, P = z^alpha / gamma(alpha + 1).
Tensor slope_of_log_gamma(const Tensor& alpha, const Tensor& y) {
  const Tensor is_small = y < -36.0;  // z is below half an ulp of 1
  const Tensor safe = where(is_small, fill_like(y, 0), y), z = exp(safe);
  const Tensor by_alpha = apply(Igamma{1}, alpha, z);
  const Tensor regular = -by_alpha * exp(z + lgamma(alpha) - alpha * safe);
  return where(is_small, (digamma(alpha + 1) - y) / alpha, regular);
}

}  // namespace

/// alpha, y: f64 -> y, the logarithm of a gamma number that was drawn with alpha. Its gradient by alpha is implicit.
struct DrawnLogGamma {
  static constexpr auto name = "drawn_log_gamma";
  static constexpr auto takes = Takes::floats;
  auto emit(auto, auto y) const { return y; }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const { return {dy * slope_of_log_gamma(in[0], y), {}}; }
};

namespace random {
namespace {

constexpr std::int64_t most_attempts = 64;  // at least 95 % of attempts are accepted
constexpr std::int64_t of_boost = 1 << 20;  // attempts have lower numbers

/// Bits for each element, by the number of the draw.
struct Draws {
  Tensor index, key;
  Tensor bits(const Tensor& number, int half) const { return philox(index, philox(number, key, 0), half); }
};

/// One attempt for all elements: log(v), and true where it is accepted.
std::pair<Tensor, Tensor> attempt(const Draws& draws, const Tensor& number, const Tensor& d) {
  const Tensor u1 = positive_unit(draws.bits(number * 2, 0), f64), u2 = half_open_unit(draws.bits(number * 2, 1), f64);
  const Tensor u = positive_unit(draws.bits(number * 2 + 1, 0), f64);
  const Tensor x = sqrt(log(u1) * -2.0) * cos(u2 * (2 * std::numbers::pi));
  const Tensor root = x * rsqrt(d * 9.0) + 1.0, is_positive = root > 0.0;
  const Tensor log_v = log(where(is_positive, root, ones_like(root))) * 3.0;
  const Tensor bound = x * x * 0.5 + d * (log_v - expm1(log_v));
  return {log_v, logical_and(is_positive, log(u) < bound)};
}

/// The logarithm of gamma numbers for alpha: f64 of any shape; NaN where alpha is not positive or not finite.
Tensor draw_log_gamma(const Tensor& alpha, const Tensor& key) {
  const Tensor fixed = stop_gradient(alpha);
  const Tensor is_valid = logical_and(fixed > 0.0, fixed < std::numeric_limits<double>::infinity());
  const Tensor safe = where(is_valid, fixed, ones_like(fixed)), is_boosted = safe < 1.0;
  const Tensor d = where(is_boosted, safe + 1.0, safe) - 1.0 / 3;
  const Draws draws{iota(alpha.shape(), i64), key};
  const auto goes_on = [](const Tensor&, const Tensor& open, const Tensor&) { return reduce_any(open); };
  const auto next = [&](const Tensor& number, const Tensor& open, const Tensor& found) {
    const auto [log_v, accepted] = attempt(draws, number, d);
    return std::tuple{number + 1, logical_and(open, logical_not(accepted)), where(open, log_v, found)};
  };
  const std::tuple first{fill({}, 0, i64), is_valid, zeros(alpha.shape(), f64)};
  const Tensor log_v = std::get<2>(while_loop(goes_on, next, first, {.max_iterations = most_attempts}));
  const Tensor u = positive_unit(draws.bits(fill({}, of_boost, i64), 0), f64);
  const Tensor y = log(d) + log_v + where(is_boosted, log(u) / safe, zeros_like(safe));
  const Tensor nan = fill_like(y, std::numeric_limits<double>::quiet_NaN());
  return apply(DrawnLogGamma{}, alpha, stop_gradient(where(is_valid, y, nan)));
}

/// Parameters in f64, and the type of the result.
struct Parameters {
  Tensor a, b;  // b may be empty
  DType dtype;
};

Parameters parameters(std::string_view op, const NumberOrTensor& alpha, const NumberOrTensor& beta,
                      std::optional<DType> dtype) {
  const NumberOrTensor& first = alpha.is_number() ? beta : alpha;
  const Tensor like = first.is_number() ? zeros({}, dtype.value_or(f32)) : first.tensor(op);
  const Parameters found{alpha.beside(like, op), beta.beside(like, op), dtype.value_or(like.dtype())};
  for (const Tensor& each : {found.a, found.b})
    require(is_floating(each.dtype()) && each.dtype() == found.dtype, op, ": a parameter is ", each.spec(),
            ", expected ", is_floating(found.dtype) ? found.dtype : f32, "; cast it");
  return found;
}

Shape joined_shape(const Shape& shape, const Parameters& of, std::string_view op) {
  Shape all = shape;
  for (const std::int64_t d : broadcast_shape(of.a.shape(), of.b.shape(), op)) all.push_back(d);
  return all;
}

Tensor wide(const Tensor& x, const Shape& shape, std::string_view op) {
  require(broadcasts_to(x.shape(), shape), op, ": a parameter is ", x.spec(),
          ", which does not broadcast to the shape ", shape, " of the result");
  return broadcast_to(cast(x, f64), shape);
}

Parameters gamma_parameters(std::string_view op, const NumberOrTensor& alpha, const GammaOptions& options) {
  if (options.beta.defined()) return parameters(op, alpha, options.beta, options.dtype);
  return parameters(op, alpha, 1, options.dtype);
}

Tensor gamma_numbers(std::string_view op, const Shape& shape, const Parameters& of, bool has_rate,
                     const KeyOrigin& origin) {
  require_known_shape(op, shape);
  const Tensor y = draw_log_gamma(wide(of.a, shape, op), origin.take());
  if (!has_rate) return cast(exp(y), of.dtype);
  const Tensor rate = wide(of.b, shape, op);
  const Tensor safe = where(rate > 0.0, rate, fill_like(rate, std::numeric_limits<double>::quiet_NaN()));
  return cast(exp(y) / safe, of.dtype);
}

/// The share of the first of two gamma numbers, by their logarithms: both may be below the least number.
Tensor beta_numbers(std::string_view op, const Shape& shape, const Parameters& of, const KeyOrigin& origin) {
  require_known_shape(op, shape);
  const Tensor key = origin.take();
  const Tensor a = draw_log_gamma(wide(of.a, shape, op), fold_key(key, 0));
  const Tensor b = draw_log_gamma(wide(of.b, shape, op), fold_key(key, 1));
  return cast(sigmoid(a - b), of.dtype);
}

}  // namespace

Tensor draw_gamma(std::string_view op, const Shape& shape, const NumberOrTensor& alpha, const GammaOptions& options,
                  const KeyOrigin& origin) {
  return gamma_numbers(op, shape, gamma_parameters(op, alpha, options), options.beta.defined(), origin);
}

Tensor draw_beta(std::string_view op, const Shape& shape, const NumberOrTensor& alpha, const NumberOrTensor& beta,
                 const BetaOptions& options, const KeyOrigin& origin) {
  return beta_numbers(op, shape, parameters(op, alpha, beta, options.dtype), origin);
}

Tensor gamma(const Shape& shape, const NumberOrTensor& alpha, const GammaOptions& options) {
  constexpr std::string_view op = "random::gamma";
  const Parameters of = gamma_parameters(op, alpha, options);
  return gamma_numbers(op, joined_shape(shape, of, op), of, options.beta.defined(), options.seed);
}

Tensor beta(const Shape& shape, const NumberOrTensor& alpha, const NumberOrTensor& beta, const BetaOptions& options) {
  constexpr std::string_view op = "random::beta";
  const Parameters of = parameters(op, alpha, beta, options.dtype);
  return beta_numbers(op, joined_shape(shape, of, op), of, options.seed);
}

}  // namespace random
}  // namespace gradus
