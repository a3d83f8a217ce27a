/// Random tensors: from 53 random bits per element to distributions, by formulas alone.
#include "gradus/ops/random.h"
#include "gradus/ops/random_draws.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include "gradus/base/floating_point_state.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"

namespace gradus {
namespace {

using scalar::Real;

constexpr int low_bits = 29;  // a float takes the 24 bits above these for one number, and these for another

scalar::Value upper(const scalar::Value& bits) { return shift_right_logical(bits, low_bits); }
Real upper(const Real& bits) { return {std::floor(std::ldexp(bits.v, -low_bits)), i64}; }
scalar::Value lower(const scalar::Value& bits) { return bits & scalar::Value((std::int64_t{1} << low_bits) - 1); }
Real lower(const Real& bits) { return {std::fmod(bits.v, std::ldexp(1, low_bits)), i64}; }

/// The rest of a division; of numbers that are not negative.
scalar::Value rest(const scalar::Value& x, const scalar::Value& divisor) { return x - (x / divisor) * divisor; }
Real rest(const Real& x, const Real& divisor) { return {divisor.v == 0 ? x.v : std::fmod(x.v, divisor.v), i64}; }

/// Horner's rule, highest coefficient first.
template <class V, std::size_t n> V polynomial(const V& x, const double (&coefficients)[n]) {
  V sum = x * V(coefficients[0]) + V(coefficients[1]);
  for (std::size_t i = 2; i < n; ++i) sum = fma(sum, x, V(coefficients[i]));
  return sum;
}

}  // namespace

/// 53 bits -> [0, 1): multiples of 2^-24 (the upper 24 bits) or 2^-53.
struct HalfOpenUnit {
  static constexpr auto name = "half_open_unit";
  static constexpr auto takes = Takes::integers;
  DType dtype = f32;
  DType result(Specs) const { return dtype; }
  auto emit(auto bits) const {
    using V = decltype(bits);
    if (dtype == f32) return convert(convert(upper(bits), i32), f32) * V(0x1p-24);
    return convert(bits, dtype) * V(0x1p-53);
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

/// 53 bits -> (0, 1], from the lower 29 bits for f32: independent of HalfOpenUnit of the same bits. The smallest is
/// 2^-30, or 2^-54.
struct PositiveUnit {
  static constexpr auto name = "positive_unit";
  static constexpr auto takes = Takes::integers;
  DType dtype = f32;
  DType result(Specs) const { return dtype; }
  auto emit(auto bits) const {
    using V = decltype(bits);
    if (dtype == f32) return fma(convert(convert(lower(bits), i32), f32), V(0x1p-29), V(0x1p-30));
    return fma(convert(bits, dtype), V(0x1p-53), V(0x1p-54));
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

/// bits modulo range: off from uniform by range / 2^53.
struct BitsBelow {
  static constexpr auto name = "bits_below";
  static constexpr auto takes = Takes::integers;
  auto emit(auto bits, auto range) const { return rest(bits, range); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

/// The quantile of the normal distribution at 1/2 + q, for |q| < 1/2 - 1e-10, given r = sqrt(-log(1/2 - |q|)):
/// algorithm AS 241, PPND16 (Wichura 1988).
struct NormalQuantile {
  static constexpr auto name = "normal_quantile";
  static constexpr auto takes = Takes::floats;
  auto emit(auto q, auto r) const {
    using V = decltype(q);
    const V s = V(0.180625) - q * q, t = r - V(1.6);
    const V middle =
        q *
        polynomial<V>(s, {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                          13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608}) /
        polynomial<V>(s, {5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                          5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0});
    const V tail = polynomial<V>(t, {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                                     1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055,
                                     4.6303378461565452959, 1.42343711074968357734}) /
                   polynomial<V>(t, {1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
                                     0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494,
                                     2.05319162663775882187, 1.0});
    return select(abs(q) <= V(0.425), middle, select(q < V(0.0), -tail, tail));
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

namespace random {
namespace {

/// The random bits of one call.
struct Source {
  Tensor index, key;
  Tensor bits(int half) const { return philox(index, key, half); }
};

Source source(std::string_view op, const Shape& shape, const KeyOrigin& origin) {
  require_known_shape(op, shape);
  return {iota(shape, i64), origin.take()};
}

void require_floats(std::string_view op, DType dtype) {
  require(is_floating(dtype), op, ": expected a floating type, got ", dtype,
          is_integer(dtype) ? "; random::integers gives integers" : "");
}

/// Narrow floats are f32 rounded, so that no draw is worth less for them.
template <class Options>
Tensor drawn_in_f32(Tensor (*draw)(const Shape&, Options, const KeyOrigin&), const Shape& shape, Options options,
                    const KeyOrigin& origin) {
  const DType narrow = std::exchange(options.dtype, f32);
  return cast(draw(shape, options, origin), narrow);
}

/// The largest number of `dtype`, a floating type, that is less than `x`.
double largest_below(double x, DType dtype) {
  return with_type(dtype, [&]<class T>(T) {
    if constexpr (NarrowElement<T>) {
      T found(x);
      const bool positive = static_cast<double>(found) > 0;
      if (static_cast<double>(found) == 0 && x <= 0) found = T::from_bits(0x8000);  // towards lower numbers
      while (!(static_cast<double>(found) < x))
        found = T::from_bits(static_cast<std::uint16_t>(positive ? found.bits - 1 : found.bits + 1));
      return static_cast<double>(found);
    } else if constexpr (std::is_same_v<T, float>) {
      return static_cast<double>(std::nextafter(static_cast<float>(x), -std::numeric_limits<float>::infinity()));
    } else {
      return std::nextafter(x, -std::numeric_limits<double>::infinity());
    }
  });
}

Tensor scaled(const Tensor& z, const NormalOptions& options) {
  const Tensor spread = options.stddev == 1 ? z : z * Scalar(options.stddev);
  return options.mean == 0 ? spread : spread + Scalar(options.mean);
}

void check_range_of(DType dtype, std::int64_t low, std::int64_t high) {
  require<OutOfRange>(scalar::Literal(low).fits(dtype) && scalar::Literal(high - 1).fits(dtype),
                      "random::integers: ", dtype, " does not hold all of [", low, ", ", high, ")");
}

}  // namespace

void require_known_shape(std::string_view op, const Shape& shape) {
  for (std::int64_t d : shape)
    require(d >= 0 || (dimension::is_symbolic(d) && Context::current()), op, ": expected a known shape, got ", shape);
}

Tensor positive_unit(const Tensor& bits, DType dtype) { return apply(PositiveUnit{dtype}, bits); }
Tensor half_open_unit(const Tensor& bits, DType dtype) { return apply(HalfOpenUnit{dtype}, bits); }

Tensor draw_normal(const Shape& shape, NormalOptions options, const KeyOrigin& origin) {
  const HostFloats floats;
  require_floats("random::normal", options.dtype);
  check_options("random::normal", options);
  if (is_narrow(options.dtype)) return drawn_in_f32(draw_normal, shape, options, origin);
  const Source from = source("random::normal", shape, origin);
  const Tensor radius = from.bits(0), angle = options.dtype == f32 ? radius : from.bits(1);
  const Tensor u = positive_unit(radius, options.dtype), v = half_open_unit(angle, options.dtype);
  return scaled(sqrt(log(u) * fill_like(u, -2)) * cos(v * fill_like(v, 2 * std::numbers::pi)), options);
}

Tensor draw_truncated_normal(const Shape& shape, NormalOptions options, const KeyOrigin& origin) {
  const HostFloats floats;
  require_floats("random::truncated_normal", options.dtype);
  check_options("random::truncated_normal", options);
  if (is_narrow(options.dtype)) return drawn_in_f32(draw_truncated_normal, shape, options, origin);
  const Source from = source("random::truncated_normal", shape, origin);
  // q + 1/2 is uniform between the normal distribution's values at -2 and 2.
  const Tensor u = positive_unit(from.bits(0), options.dtype), half = fill_like(u, 0.5);
  const Tensor q = (u - half) * fill_like(u, std::erf(std::numbers::sqrt2));
  const Tensor z = apply(NormalQuantile{}, q, sqrt(-log(half - abs(q))));
  return scaled(minimum(maximum(z, fill_like(z, -2)), fill_like(z, 2)), options);
}

Tensor draw_uniform(const Shape& shape, UniformOptions options, const KeyOrigin& origin) {
  const HostFloats floats;
  require_floats("random::uniform", options.dtype);
  check_options("random::uniform", options);
  require(options.low < options.high && std::isfinite(options.high - options.low),
          "random::uniform: expected low < high, got ", options.low, " and ", options.high);
  if (is_narrow(options.dtype)) {
    const Tensor drawn = drawn_in_f32(draw_uniform, shape, options, origin);
    return minimum(drawn, Scalar(largest_below(options.high, options.dtype)));
  }
  const Source from = source("random::uniform", shape, origin);
  const Tensor u = half_open_unit(from.bits(0), options.dtype);
  if (options.low == 0 && options.high == 1) return u;
  // Rounding may reach `high`, which is not in the range.
  const double last = largest_below(options.high, options.dtype);
  return minimum(u * Scalar(options.high - options.low) + Scalar(options.low), Scalar(last));
}

Tensor draw_integers(const Shape& shape, IntegerOptions options, const KeyOrigin& origin) {
  require(is_integer(options.dtype), "random::integers: expected an integer type, got ", options.dtype);
  require(options.low < options.high, "random::integers: expected low < high, got ", options.low, " and ",
          options.high);
  std::int64_t range = 0;
  require(!__builtin_sub_overflow(options.high, options.low, &range) && range <= std::int64_t{1} << 53,
          "random::integers: [", options.low, ", ", options.high, ") has more than 2^53 numbers");
  check_range_of(options.dtype, options.low, options.high);
  const Source from = source("random::integers", shape, origin);
  const Tensor limit = from_values(std::vector{range}, Shape{});
  const Tensor below = apply(BitsBelow{}, from.bits(0), broadcast_to(limit, shape));
  return cast(options.low == 0 ? below : below + Scalar(options.low), options.dtype);
}

Tensor draw_categorical(const Tensor& logits, std::int64_t num_samples, CategoricalOptions options,
                        const KeyOrigin& origin) {
  Shape drawn = logits.shape();
  require(is_floating(logits.dtype()) && drawn.rank() > 0 && drawn.back() != 0,
          "random::categorical: expected logits of floats, [..., classes] with one class at least, got ",
          logits.spec());
  require(num_samples > 0, "random::categorical: num_samples: expected a positive number, got ", num_samples);
  require(is_integer(options.dtype), "random::categorical: expected an integer type, got ", options.dtype);
  const DType dtype = is_narrow(logits.dtype()) ? f32 : logits.dtype();
  drawn.insert(drawn.rank() - 1, num_samples);  // [..., num_samples, classes]
  const Tensor u = positive_unit(source("random::categorical", drawn, origin).bits(0), dtype);
  // Exponential numbers; where u is 1, as a number that stands for all that are rounded to 1.
  const Tensor waiting = maximum(-log(u), fill_like(u, dtype == f32 ? 0x1p-26 : 0x1p-54));
  const Tensor sizes = expand_dims(cast(logits, dtype), -2), drawn_sizes = sizes - log(waiting);
  // NaN is drawn, so that it shows: argmax alone would pass over it.
  const Tensor noisy =
      where(is_nan(drawn_sizes), fill_like(drawn_sizes, std::numeric_limits<double>::infinity()), drawn_sizes);
  return argmax(noisy, {.axis = -1, .output_type = options.dtype});
}

Tensor draw_shuffled(const Tensor& x, const KeyOrigin& origin) {
  require(x.shape().rank() > 0, "random::shuffle: expected rows, got the scalar ", x.spec());
  return gather(x, argsort(source("random::shuffle", {x.shape()[0]}, origin).bits(0)));
}

Tensor normal(const Shape& shape, NormalOptions options) { return draw_normal(shape, options, options.seed); }
Tensor truncated_normal(const Shape& shape, NormalOptions options) {
  return draw_truncated_normal(shape, options, options.seed);
}
Tensor uniform(const Shape& shape, UniformOptions options) { return draw_uniform(shape, options, options.seed); }
Tensor integers(const Shape& shape, IntegerOptions options) { return draw_integers(shape, options, options.seed); }
Tensor categorical(const Tensor& logits, std::int64_t num_samples, CategoricalOptions options) {
  return draw_categorical(logits, num_samples, options, options.seed);
}
Tensor shuffle(const Tensor& x, ShuffledOptions options) { return draw_shuffled(x, options.seed); }

}  // namespace random
}  // namespace gradus
