/// Cosine transforms. Up to 256 points they are products with a matrix; longer ones are Fourier transforms of twice the
/// length between rotations.
#include "gradus/ops/spectral.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/graph/context.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/pool_ops.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/signal_parts.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

constexpr std::int64_t most_cosine_by_matrix = 256;
constexpr std::int64_t most_elements = std::int64_t{1} << 24;  // of what is made on the host
constexpr double pi = std::numbers::pi;

/// y_k = after(k) sum before(t) x_t cos(angle(t, k))
struct CosineTransform {
  int type;
  std::int64_t n;
  bool ortho;

  double before(std::int64_t t) const {
    if (type == 1) return t == 0 || t == n - 1 ? 1 : 2;
    if (type != 3) return 1;
    const auto size = static_cast<double>(n);
    return ortho ? std::sqrt((t == 0 ? 1 : 2) / size) : t == 0 ? 1 : 2;
  }
  double after(std::int64_t k) const {
    if (type == 1 || type == 3) return 1;
    const double size = 2 * static_cast<double>(n);
    return !ortho ? 2 : type == 2 && k == 0 ? std::sqrt(2 / size) : 2 / std::sqrt(size);
  }
  /// A product of whole numbers times a part of a turn, which is exact within one turn.
  double angle(std::int64_t t, std::int64_t k) const {
    const std::int64_t steps = type == 1   ? 2 * t * k
                               : type == 2 ? k * (2 * t + 1)
                               : type == 3 ? t * (2 * k + 1)
                                           : (2 * k + 1) * (2 * t + 1);
    const std::int64_t half_turn = type == 1 ? 2 * (n - 1) : type == 4 ? 4 * n : 2 * n;
    return pi * static_cast<double>(steps % (2 * half_turn)) / static_cast<double>(half_turn);
  }
};

Tensor by_matrix(const Tensor& x, const CosineTransform& transform) {
  const std::int64_t n = transform.n;
  std::vector<double> matrix;
  for (std::int64_t t = 0; t < n; ++t)
    for (std::int64_t k = 0; k < n; ++k)
      matrix.push_back(transform.before(t) * transform.after(k) * std::cos(transform.angle(t, k)));
  const Tensor factors = cast(from_values(matrix, {n, n}), x.dtype());
  if (x.shape().rank() > 1) return matmul(x, factors);
  return squeeze(matmul(expand_dims(x, 0), factors), {0});
}

/// size(i) exp(-i angle(i)) for i < n: real and imaginary part.
std::array<Tensor, 2> rotations(std::int64_t n, DType t, auto size, auto angle) {
  std::vector<double> re, im;
  for (std::int64_t i = 0; i < n; ++i) {
    re.push_back(size(i) * std::cos(angle(i)));
    im.push_back(-size(i) * std::sin(angle(i)));
  }
  return {cast(from_values(re, {n}), t), cast(from_values(im, {n}), t)};
}

/// angle(t, k) = 2 pi t k / points + (what depends on t alone) + (what depends on k alone).
Tensor by_fourier(const Tensor& x, const CosineTransform& transform) {
  const std::int64_t n = transform.n, points = transform.type == 1 ? 2 * (n - 1) : 2 * n;
  const auto none = [](std::int64_t) { return 0.0; };
  const auto of_first = [&](std::int64_t t) { return transform.angle(t, 0) - transform.angle(0, 0); };
  const auto of_second = [&](std::int64_t k) { return transform.angle(0, k); };
  const auto before = [&](std::int64_t t) { return transform.before(t); };
  const auto after = [&](std::int64_t k) { return transform.after(k); };
  const DType type = x.dtype();
  const bool turns_first = transform.type >= 3, turns_second = transform.type % 2 == 0;
  const auto [first_re, first_im] =
      turns_first ? rotations(n, type, before, of_first) : rotations(n, type, before, none);
  const auto [second_re, second_im] =
      turns_second ? rotations(n, type, after, of_second) : rotations(n, type, after, none);
  const Tensor turned = turns_first ? stack({x * first_re, x * first_im}, -1) : expand_dims(x * first_re, -1);
  const Tensor y = slice_within(dft(turned, {.dft_length = points}), -2, 0, n);
  const auto part = [&](std::int64_t k) { return squeeze(slice_within(y, -1, k, 1), {-1}); };
  return turns_second ? part(0) * second_re - part(1) * second_im : part(0) * second_re;
}

Tensor cosine_transform(std::string_view op, const Tensor& x, int type, const DctOptions& options) {
  const HostFloats floats;
  require_floating(x, op);
  checked_axis(x, -1, op);
  require(options.type >= 1 && options.type <= 4, op, ": expected type 1, 2, 3 or 4, got ", options.type);
  require(options.norm.empty() || options.norm == "ortho", op, ": expected no norm or \"ortho\", got \"", options.norm,
          '"');
  const bool ortho = !options.norm.empty();
  require(type != 1 || !ortho, op, ": type 1 has no norm \"ortho\"");
  const std::int64_t n = options.n != 0 ? options.n : x.shape().back();
  require(x.shape().back() >= 0 && n >= (type == 1 ? 2 : 1) && n <= most_elements, op, ": the last dimension of ",
          x.spec(), ", transformed as ", dimension::to_text(n), ", must be known and at least ", type == 1 ? 2 : 1);
  const Tensor wide = cast(fitted(x, n), computed_in(x.dtype()));
  const CosineTransform transform{type, n, ortho};
  return cast(n <= most_cosine_by_matrix ? by_matrix(wide, transform) : by_fourier(wide, transform), x.dtype());
}

Tensor shifted(const Tensor& x, const std::vector<int>& axis, bool back, std::string_view op) {
  std::vector<int> axes = axis;
  for (int i = 0; axis.empty() && i < x.shape().rank(); ++i) axes.push_back(i);
  Tensor y = x;
  for (const int a : axes) {
    const int at = checked_axis(x, a, op);
    const std::int64_t n = x.shape()[at];
    if (n == 0 || n == 1) continue;
    const std::int64_t tail = back ? dimension::ceil_divide(n, 2) : dimension::floor_divide(n, 2);
    const std::int64_t head = dimension::subtract(n, tail);
    y = concat({slice_within(y, at, head, tail), slice_within(y, at, 0, head)}, at);
  }
  return y;
}

void check_window(std::string_view op, std::int64_t n, DType dtype) {
  require(n >= 0 && n <= most_elements, op, ": ", n, " elements; expected a known number of them");
  require(is_floating(dtype), op, ": a window is of floats, not ", dtype);
}

/// I0(beta sqrt(1 - t^2)) / I0(beta) for n numbers t from -1 to 1, f64[n]. It depends on numbers alone, so it is
/// concrete in a trace, too.
Tensor kaiser(std::int64_t n, double beta) {
  const Untraced outside;
  const Tensor t = n == 1 ? zeros({1}, f64) : range(n, f64) * 2.0 / static_cast<double>(n - 1) - 1.0;
  return bessel_i0(sqrt(maximum(1.0 - t * t, 0.0)) * beta) / bessel_i0(fill_like(t, beta));
}

}  // namespace

Tensor dct(const Tensor& x, DctOptions options) { return cosine_transform("dct", x, options.type, options); }
Tensor idct(const Tensor& x, DctOptions options) {
  const int type = options.type == 2 ? 3 : options.type == 3 ? 2 : options.type;
  return cosine_transform("idct", x, type, options);
}

Tensor fft(const Tensor& x) { return dft(x); }
Tensor ifft(const Tensor& x) { return dft(x, {.inverse = true}); }
Tensor rfft(const Tensor& x, std::int64_t fft_length) {
  checked_axis(x, -1, "rfft");
  return dft(expand_dims(x, -1), {.dft_length = fft_length, .onesided = true});
}
Tensor irfft(const Tensor& x, std::int64_t fft_length) {
  require(x.shape().rank() >= 2 && x.shape().back() == 2, "irfft: got ", x.spec(),
          ", expected [..., m, 2], real and imaginary parts");
  return squeeze(dft(x, {.dft_length = fft_length, .inverse = true, .onesided = true}), {-1});
}
Tensor fftshift(const Tensor& x, const NamedAxes& named) { return shifted(x, named.axis, false, "fftshift"); }
Tensor ifftshift(const Tensor& x, const NamedAxes& named) { return shifted(x, named.axis, true, "ifftshift"); }

Tensor frame(const Tensor& signal, std::int64_t frame_length, std::int64_t frame_step, FrameOptions options) {
  const int axis = checked_axis(signal, options.axis, "frame");
  const std::int64_t n = signal.shape()[axis];
  require(frame_length > 0 && frame_step > 0, "frame: frames of ", frame_length, " elements in steps of ", frame_step,
          " of ", signal.spec(), "; expected positive numbers");
  const std::int64_t room = dimension::subtract(n, frame_length);
  const std::int64_t whole = dimension::maximum(dimension::add(dimension::floor_divide(room, frame_step), 1), 0);
  const std::int64_t frames = options.pad_end ? dimension::ceil_divide(n, frame_step) : whole;
  require(frames <= most_elements / frame_length, "frame: ", frames, " frames of ", frame_length,
          " elements are too many");
  Tensor x = signal;
  const std::int64_t steps = dimension::multiply(dimension::subtract(frames, 1), frame_step);
  const std::int64_t missing = dimension::maximum(dimension::subtract(steps, room), 0);
  const bool fits = frames == 0 || missing == 0;
  if (!SizeChoice::choose(fits) || !fits) {
    std::vector<std::array<std::int64_t, 2>> paddings(static_cast<std::size_t>(x.shape().rank()), {0, 0});
    paddings[static_cast<std::size_t>(axis)][1] = missing;
    x = pad(x, paddings, number_beside(x, options.pad_value));
  }
  const Tensor places = expand_dims(range(frames, i64) * frame_step, 1) + range(frame_length, i64);
  return gather(x, places, axis);
}

Tensor overlap_and_add(const Tensor& signal, std::int64_t frame_step) {
  const Shape& shape = signal.shape();
  require(shape.rank() >= 2 && shape[-1] > 0 && frame_step > 0 && signal.dtype() != boolean, "overlap_and_add: frames ",
          signal.spec(), " in steps of ", frame_step,
          "; expected numbers [..., frames, frame_length] of a known length and a positive step");
  const std::int64_t frames = shape[-2], length = shape[-1];
  Shape result = shape;
  result.erase(result.rank() - 1);
  const std::int64_t steps = dimension::multiply(dimension::subtract(frames, 1), frame_step);
  result.set(-1, frames == 0 ? 0 : dimension::add(steps, length));
  if (frames == 0) return zeros(result, signal.dtype());
  Shape rows = shape;
  rows.erase(rows.rank() - 1);
  rows.erase(rows.rank() - 1);
  const Tensor patches = reshape(widened(signal), {rows.size(), frames, length, 1});
  const Fold fold{.strides = {frame_step}, .dilations = {1}, .size = {result.back()}};
  return cast(reshape(apply(fold, patches), result), signal.dtype());
}

Tensor kaiser_window(std::int64_t n, double beta, DType dtype) {
  check_window("kaiser_window", n, dtype);
  const Untraced outside;
  return cast(kaiser(n, beta), dtype);
}

Tensor kaiser_bessel_derived_window(std::int64_t n, double beta, DType dtype) {
  const HostFloats floats;
  check_window("kaiser_bessel_derived_window", n, dtype);
  require(n % 2 == 0, "kaiser_bessel_derived_window: expected an even number of elements, got ", n);
  const Tensor rising = kaiser(n / 2 + 1, beta);
  const auto numbers = rising.span<double>();
  std::vector<double> sums(numbers.begin(), numbers.end()), values;
  for (std::size_t i = 1; i < sums.size(); ++i) sums[i] += sums[i - 1];
  for (std::size_t i = 0; i + 1 < sums.size(); ++i) values.push_back(std::sqrt(sums[i] / sums.back()));
  for (std::size_t i = values.size(); i-- > 0;) values.push_back(values[i]);
  return cast(from_values(values, {n}), dtype);
}

Tensor vorbis_window(std::int64_t n, DType dtype) {
  const HostFloats floats;
  check_window("vorbis_window", n, dtype);
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    const double s = std::sin(pi * (static_cast<double>(i) + 0.5) / static_cast<double>(n));
    values.push_back(std::sin(pi / 2 * s * s));
  }
  return cast(from_values(values, {n}), dtype);
}

Tensor linear_to_mel_weight_matrix(LinearToMelOptions options) {
  const HostFloats floats;
  constexpr std::string_view op = "linear_to_mel_weight_matrix";
  const auto [columns, rows, rate, low, high, dtype] = options;
  require(columns > 0 && rows > 0 && rows < most_elements && columns <= most_elements / rows && rate > 0, op, ": ",
          columns, " bins of ", rows, " at ", rate, " Hz; expected positive numbers of a reasonable size");
  require(low >= 0 && low < high && high <= rate / 2, op, ": edges of ", low, " and ", high,
          " Hz; expected 0 <= lower < upper <= half the sample rate, ", rate);
  require(is_floating(dtype), op, ": expected a float type, got ", dtype);
  const auto mel = [](double hertz) { return 1127 * std::log(1 + hertz / 700); };
  const double first = mel(low), step = (mel(high) - first) / static_cast<double>(columns + 1);
  std::vector<double> matrix(static_cast<std::size_t>(columns), 0);  // frequency 0 goes nowhere
  for (std::int64_t row = 1; row < rows; ++row) {
    const double at = mel(rate / 2 * static_cast<double>(row) / static_cast<double>(rows - 1));
    for (std::int64_t column = 0; column < columns; ++column) {
      const double left = first + step * static_cast<double>(column), place = (at - left) / step;
      matrix.push_back(std::max(0.0, std::min(place, 2 - place)));
    }
  }
  return cast(from_values(matrix, {rows, columns}), dtype);
}

Tensor mfccs_from_log_mel_spectrograms(const Tensor& log_mel_spectrograms) {
  const HostFloats floats;
  const Tensor y = dct(log_mel_spectrograms);
  return y / std::sqrt(2 * static_cast<double>(y.shape().back()));
}

}  // namespace gradus
