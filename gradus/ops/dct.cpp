/// Cosine transforms as Fourier transforms of twice as many points, turned by half a step.
#include "gradus/ops/dct.h"
#include <cmath>
#include <numbers>
#include <vector>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/signal.h"

namespace gradus {
namespace {

Tensor first(const Tensor& x, std::int64_t n) { return slice_axis(x, -1, 0, n, "dct"); }

Tensor of_length(const Tensor& x, std::int64_t n) {
  const std::int64_t given = x.shape().back();
  if (n <= given) return n == given ? x : first(x, n);
  Shape more = x.shape();
  more.set(-1, n - given);
  return concat({x, fill(more, 0, x.dtype())}, -1);
}

/// The real (0) or imaginary (1) parts.
Tensor part(const Tensor& z, int which) { return squeeze(slice_axis(z, -1, which, 1, "dct"), {-1}); }

/// [n]: f(k)
template <class F> Tensor table(std::int64_t n, DType t, F f) {
  std::vector<double> values;
  for (std::int64_t k = 0; k < n; ++k) values.push_back(f(static_cast<double>(k)));
  return cast(from_values(values, {n}), t);
}

/// Half a step of 2 n points, times `weight`, times `other` at 0.
struct HalfSteps {
  Tensor cosine, sine;
  HalfSteps(std::int64_t n, DType t, double weight, double other) {
    const double step = std::numbers::pi / (2 * static_cast<double>(n));
    cosine = table(n, t, [=](double k) { return (k == 0 ? other : weight) * std::cos(step * k); });
    sine = table(n, t, [=](double k) { return weight * std::sin(step * k); });
  }
};

Tensor spectrum(const Tensor& x, std::int64_t length) {
  return dft(expand_dims(x, -1), {.axis = -2, .dft_length = length, .onesided = true});
}

Tensor dct1(const Tensor& x) {
  const std::int64_t n = x.shape().back();
  if (n == 2) return part(spectrum(x, 2), 0);
  const Tensor back = reverse(slice_axis(x, -1, 1, n - 2, "dct"), {-1});
  return part(spectrum(concat({x, back}, -1), 2 * (n - 1)), 0);
}

Tensor dct2(const Tensor& x, DctNorm norm) {
  const std::int64_t n = x.shape().back();
  const auto points = static_cast<double>(n);
  const bool ortho = norm == DctNorm::ortho;
  const HalfSteps turn(n, x.dtype(), ortho ? std::sqrt(2 / points) : 2, ortho ? std::sqrt(1 / points) : 2);
  const Tensor z = spectrum(x, 2 * n);
  return first(part(z, 0), n) * turn.cosine + first(part(z, 1), n) * turn.sine;
}

Tensor dct3(const Tensor& x, DctNorm norm) {
  const std::int64_t n = x.shape().back();
  const auto points = static_cast<double>(n);
  const bool ortho = norm == DctNorm::ortho;
  const HalfSteps turn(n, x.dtype(), ortho ? std::sqrt(2 * points) : 2 * points,
                       ortho ? 2 * std::sqrt(points) : 2 * points);
  const auto column = [&](const Tensor& factor) { return expand_dims(of_length(x * factor, n + 1), -1); };
  const Tensor z = concat({column(turn.cosine), column(turn.sine)}, -1);
  return first(part(dft(z, {.axis = -2, .dft_length = 2 * n, .inverse = true, .onesided = true}), 0), n);
}

/// The odd points of a transform of type 2 of twice the length.
Tensor dct4(const Tensor& x, DctNorm norm) {
  const std::int64_t n = x.shape().back();
  const Tensor twice = dct2(of_length(x, 2 * n), DctNorm::none);
  Shape pairs = x.shape();
  pairs.push_back(2);
  const Tensor odd = part(reshape(twice, pairs), 1);
  return norm == DctNorm::ortho ? odd * std::sqrt(0.5 / static_cast<double>(n)) : odd;
}

}  // namespace

Tensor dct(const Tensor& x, DctOptions options) {
  require(is_floating(x.dtype()) && x.shape().rank() >= 1, "dct: expected floats [..., n], got ", x.spec());
  require(options.type >= 1 && options.type <= 4, "dct: the type must be 1, 2, 3 or 4, got ", options.type);
  require(options.type != 1 || options.norm == DctNorm::none, "dct: type 1 has no orthogonal form");
  const std::int64_t n = options.n == 0 ? x.shape().back() : options.n;
  const std::int64_t least = options.type == 1 ? 2 : 1;
  require(x.shape().back() >= 0 && n >= least, "dct: the length of ", x.spec(), ", transformed as ", n,
          ", must be known and at least ", least);
  const Tensor wide = of_length(cast(x, computed_in(x.dtype())), n);
  const Tensor y = options.type == 1   ? dct1(wide)
                   : options.type == 2 ? dct2(wide, options.norm)
                   : options.type == 3 ? dct3(wide, options.norm)
                                       : dct4(wide, options.norm);
  return cast(y, x.dtype());
}

Tensor idct(const Tensor& x, DctOptions options) {
  if (options.type == 2 || options.type == 3) options.type = 5 - options.type;
  return dct(x, options);
}

}  // namespace gradus
