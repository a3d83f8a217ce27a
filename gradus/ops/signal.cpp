/// Fourier transforms: of lengths with small factors a primitive, of others a product with a matrix or a convolution of
/// 2^k points. Complex tensors are [..., n, 2].
#include "gradus/ops/signal.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/signal_parts.h"
#include "gradus/ops/size_bounds.h"
#include "gradus/ops/widened.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

constexpr std::int64_t most_by_matrix = 256;                        // points of a length with a large factor
constexpr std::int64_t most_host_elements = std::int64_t{1} << 26;  // of what is made on the host

/// [..., 1]: the real (0) or imaginary (1) part.
Tensor part_of(const Tensor& x, std::int64_t which) { return slice_within(x, -1, which, 1); }

Tensor complex_product(const Tensor& x, const Tensor& y) {
  const Tensor a = part_of(x, 0), b = part_of(x, 1), c = part_of(y, 0), d = part_of(y, 1);
  return concat({a * c - b * d, a * d + b * c}, -1);
}
Tensor conjugate(const Tensor& x) { return concat({part_of(x, 0), -part_of(x, 1)}, -1); }

/// The first n points, zeros behind what there is: [..., n, parts].
Tensor fitted_signal(const Tensor& x, std::int64_t n) {
  const std::int64_t length = x.shape()[-2];
  if (n <= length) return slice_within(x, -2, 0, n);
  std::vector<std::array<std::int64_t, 2>> paddings(static_cast<std::size_t>(x.shape().rank()));
  paddings[paddings.size() - 2] = {0, n - length};
  return pad(x, paddings);
}

/// exp(sign 2 pi i k t / n) as a matrix from the parts of t to those of k: [2 n, 2 n].
Tensor by_matrix(const Tensor& x, double sign) {
  const std::int64_t n = x.shape()[-2];
  std::vector<double> matrix(static_cast<std::size_t>(4 * n * n));
  for (std::int64_t t = 0; t < n; ++t)
    for (std::int64_t k = 0; k < n; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(t * k % n) / static_cast<double>(n);
      const auto at = [&](std::int64_t from, std::int64_t to) -> double& {
        return matrix[static_cast<std::size_t>((2 * t + from) * 2 * n + 2 * k + to)];
      };
      at(0, 0) = at(1, 1) = std::cos(angle);
      at(0, 1) = sign * std::sin(angle);
      at(1, 0) = -at(0, 1);
    }
  Shape flat = x.shape();
  flat.erase(flat.rank() - 1);
  flat.set(-1, 2 * n);
  return reshape(matmul(reshape(x, flat), cast(from_values(matrix, {2 * n, 2 * n}), x.dtype())), x.shape());
}

/// As a convolution of 2^k points (Bluestein 1970): k t = (k^2 + t^2 - (k - t)^2) / 2.
Tensor chirped(const Tensor& x, double sign) {
  const std::int64_t n = x.shape()[-2];
  std::int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  std::vector<double> values(static_cast<std::size_t>(2 * m));
  for (std::int64_t i = 0; i < n; ++i) {
    const double angle = std::numbers::pi * static_cast<double>(i * i % (2 * n)) / static_cast<double>(n);
    for (const std::int64_t place : {i, (m - i) % m}) {
      values[static_cast<std::size_t>(2 * place)] = std::cos(angle);
      values[static_cast<std::size_t>(2 * place + 1)] = sign * std::sin(angle);
    }
  }
  const Tensor chirp = cast(from_values(values, {m, 2}), x.dtype()), rotation = slice_within(chirp, -2, 0, n);
  const Tensor spectrum = apply(Fourier{}, fitted_signal(complex_product(x, rotation), m));
  const Tensor y = apply(Fourier{.inverse = true}, complex_product(spectrum, apply(Fourier{}, conjugate(chirp))));
  return complex_product(slice_within(y, -2, 0, n) / static_cast<double>(m), rotation);
}

/// The transform of complex numbers, not divided.
Tensor transformed(const Tensor& x, bool inverse) {
  const std::int64_t n = x.shape()[-2];
  if (is_fourier_length(n)) return apply(Fourier{.inverse = inverse}, x);
  return n <= most_by_matrix ? by_matrix(x, inverse ? 1 : -1) : chirped(x, inverse ? 1 : -1);
}

Tensor as_complex(const Tensor& x) { return x.shape()[-1] == 2 ? x : concat({x, zeros_like(x)}, -1); }

/// The whole spectrum of a real signal of n points from its first half.
Tensor mirrored(const Tensor& half, std::int64_t n) {
  const std::int64_t rest = n - (n / 2 + 1);
  if (rest == 0) return half;
  return concat({half, conjugate(reverse(slice_axis(half, half.shape().rank() - 2, 1, rest, "dft"), {-2}))}, -2);
}

Tensor moved(const Tensor& x, int from, int to) {
  std::vector<int> order;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return transpose(x, order);
}

/// The first half of the spectrum of a real signal.
Tensor half_spectrum(const Tensor& x) {
  const std::int64_t n = x.shape()[-2];
  if (is_fourier_length(n)) return apply(Fourier{.onesided = true}, x);
  return slice_within(transformed(as_complex(x), false), -2, 0, n / 2 + 1);
}

/// dft along `axis` (not negative) of length n.
Tensor spectrum(const Tensor& x, int axis, std::int64_t n, const DftOptions& options) {
  const int last = x.shape().rank() - 2;
  const bool from_half = options.inverse && options.onesided;
  const Tensor signal =
      fitted_signal(moved(cast(x, x.dtype() == f64 ? f64 : f32), axis, last), from_half ? n / 2 + 1 : n);
  Tensor y;
  if (options.onesided && !options.inverse) y = half_spectrum(signal);
  else y = transformed(from_half ? mirrored(as_complex(signal), n) : as_complex(signal), options.inverse);
  if (from_half) y = part_of(y, 0);
  if (options.inverse) y = y / static_cast<double>(n);
  return cast(moved(y, last, axis), x.dtype());
}

void check_signal(std::string_view op, const Tensor& x) {
  require(is_floating(x.dtype()) && x.shape().rank() >= 2 && (x.shape()[-1] == 1 || x.shape()[-1] == 2), op, ": got ",
          x.spec(), ", expected floats with a last dimension of 1 (real) or 2 (complex)");
}

}  // namespace

Tensor fitted(const Tensor& x, std::int64_t n) {
  const std::int64_t length = x.shape()[-1];
  if (n <= length) return slice_within(x, -1, 0, n);
  std::vector<std::array<std::int64_t, 2>> paddings(static_cast<std::size_t>(x.shape().rank()));
  paddings.back() = {0, n - length};
  return pad(x, paddings);
}

// ---------------------------------------------------------------- the primitive

bool is_fourier_length(std::int64_t n) {
  for (std::int64_t factor = 2; factor <= most_fourier_factor; ++factor)
    while (n > 1 && n % factor == 0) n /= factor;
  return n == 1;
}

Spec Fourier::infer(Specs in) const {
  require(in.size() == 1, name, ": expected 1 operand, got ", in.size());
  const Spec& x = in[0];
  require((x.dtype == f32 || x.dtype == f64) && x.shape.rank() >= 2, name,
          ": expected f32 or f64 [..., n, parts], got ", x);
  require(x.shape[-1] == (onesided ? 1 : 2) && !(onesided && inverse), name, ": got ", x, ", expected ",
          onesided ? "one part, and no inverse" : "two parts");
  require(is_fourier_length(x.shape[-2]), name, ": ", dimension::to_text(x.shape[-2]),
          " points have a prime factor above ", most_fourier_factor);
  Spec y = x;
  y.shape.set(-1, 2);
  if (onesided) y.shape.set(-2, x.shape[-2] / 2 + 1);
  return y;
}

/// The transposed map: that of the conjugate rotations. What is left out of a half has a cotangent of 0.
Tensors Fourier::vjp(In in, const Tensor&, const Tensor& dy) const {
  if (!onesided) return {apply(Fourier{.inverse = !inverse}, dy)};
  return {part_of(apply(Fourier{.inverse = true}, fitted_signal(dy, in[0].shape()[-2])), 0)};
}

Tensor Fourier::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }

int Fourier::carries(Specs, int, int along) const { return along <= -3 ? along : 0; }

// ---------------------------------------------------------------- transforms of signals

Tensor dft(const Tensor& x, DftOptions options) {
  const HostFloats floats;
  check_signal("dft", x);
  if (x.shape().rank() == 2) {  // one signal: products are of matrices
    options.axis = x.shape().normalized(options.axis) + 1;
    return squeeze(dft(expand_dims(x, 0), options), {0});
  }
  const int axis = x.shape().normalized(options.axis);
  require(axis < x.shape().rank() - 1, "dft: axis ", options.axis, " of ", x.spec(),
          " is the last one, which holds real and imaginary parts");
  require(!options.onesided || options.inverse || x.shape()[-1] == 1, "dft: onesided is of real signals, but ",
          x.spec(), " is complex");
  const std::int64_t given = x.shape()[axis];
  const std::int64_t n = options.dft_length != 0               ? options.dft_length
                         : options.inverse && options.onesided ? 2 * (given - 1)
                                                               : given;
  require(n > 0 && n <= most_host_elements && given >= 0, "dft: the length of ", x.spec(), " along axis ", axis,
          ", transformed as ", dimension::to_text(n), ", must be known and positive");
  return spectrum(x, axis, n, options);
}

Tensor stft(const Tensor& signal, StftOptions options) {
  const HostFloats floats;
  check_signal("stft", signal);
  const std::int64_t n = signal.shape()[-2];
  const bool has_window = options.window.defined();
  if (has_window)
    require(options.window.shape().rank() == 1 && options.window.dtype() == signal.dtype(), "stft: the window is ",
            options.window.spec(), ", expected [frame_length] of the dtype of the signal, ", signal.spec());
  const std::int64_t length = options.frame_length != 0 ? options.frame_length
                              : has_window              ? options.window.shape()[0]
                                                        : n;
  require(signal.shape().rank() == 3, "stft: the signal is ", signal.spec(), ", expected [batch, n, 1 or 2]");
  require(!has_window || options.window.shape()[0] == length, "stft: the window is ",
          has_window ? options.window.spec() : Spec(), ", the frames have ", length, " elements");
  const auto too_long = [&] {
    return text("stft: frames of ", dimension::to_text(length), " elements in steps of ", options.frame_step,
                " do not fit into ", signal.spec());
  };
  const bool is_open = length < 0 && Context::current();
  if ((length <= 0 && !is_open) || (n >= 0 && length > n) || options.frame_step <= 0) throw InvalidArgument(too_long());
  const std::int64_t room = dimension::subtract(n, length);
  require_not_negative(room, too_long);
  require(!options.onesided || signal.shape()[-1] == 1, "stft: onesided is of real signals, but ", signal.spec(),
          " is complex");
  const std::int64_t frames = dimension::add(dimension::floor_divide(room, options.frame_step), 1);
  require(dimension::multiply(frames, length) <= most_host_elements * 8, "stft: ", frames, " frames of ", length,
          " elements are too many");
  const Tensor places = expand_dims(range(frames, i64) * options.frame_step, 1) + range(length, i64);
  Tensor framed = gather(widened(signal), places, 1);  // [batch, frames, length, parts]
  if (has_window) framed = framed * expand_dims(widened(options.window), 1);
  return cast(dft(framed, {.axis = 2, .onesided = options.onesided}), signal.dtype());
}

Tensor cosine_window(std::int64_t n, const std::vector<double>& a, SignalWindowOptions options) {
  const HostFloats floats;
  require(n >= 0 && n <= most_host_elements, "window: ", n, " elements; expected a known number of them");
  require(is_floating(options.dtype), "window: a window is of floats, not ", options.dtype);
  const auto period = static_cast<double>(options.periodic ? n : n - 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0, sign = 1;
    for (std::size_t k = 0; k < a.size(); ++k, sign = -sign)
      sum += sign * a[k] * std::cos(2 * std::numbers::pi * static_cast<double>(k) * static_cast<double>(i) / period);
    values.push_back(n == 1 ? 1 : sum);
  }
  return cast(from_values(values, {n}), options.dtype);
}

Tensor hann_window(std::int64_t n, SignalWindowOptions options) { return cosine_window(n, {0.5, 0.5}, options); }
Tensor hamming_window(std::int64_t n, SignalWindowOptions options) { return cosine_window(n, {0.54, 0.46}, options); }
Tensor blackman_window(std::int64_t n, SignalWindowOptions options) {
  return cosine_window(n, {0.42, 0.5, 0.08}, options);
}

namespace {

/// Adds the triangle over the bins left, middle, right to column `column`.
void add_triangle(std::vector<double>& matrix, std::int64_t columns, std::int64_t column,
                  std::span<const std::int64_t, 3> bins) {
  const auto [left, middle, right] = std::array{bins[0], bins[1], bins[2]};
  const auto at = [&](std::int64_t row) -> double& { return matrix[static_cast<std::size_t>(row * columns + column)]; };
  if (left == middle) at(middle) = 1;
  for (std::int64_t row = left; row <= middle && left < middle; ++row)
    at(row) = static_cast<double>(row - left) / static_cast<double>(middle - left);
  for (std::int64_t row = middle; row < right; ++row)
    at(row) = static_cast<double>(right - row) / static_cast<double>(right - middle);
}

}  // namespace

Tensor mel_weight_matrix(std::int64_t num_mel_bins, std::int64_t dft_length, std::int64_t sample_rate,
                         double lower_edge_hertz, double upper_edge_hertz, DType dtype) {
  const HostFloats floats;
  require(num_mel_bins >= 0 && dft_length > 0 && sample_rate > 0 && dft_length < most_host_elements &&
              num_mel_bins < most_host_elements && (dft_length / 2 + 1) * num_mel_bins <= most_host_elements,
          "mel_weight_matrix: ", num_mel_bins, " bins of a transform of ", dft_length, " points at ", sample_rate,
          " Hz; expected positive numbers of a reasonable size");
  require(lower_edge_hertz >= 0 && lower_edge_hertz <= upper_edge_hertz &&
              upper_edge_hertz <= static_cast<double>(sample_rate) / 2,
          "mel_weight_matrix: edges of ", lower_edge_hertz, " and ", upper_edge_hertz,
          " Hz; expected 0 <= lower <= upper <= half the sample rate, ", sample_rate);
  require(is_floating(dtype) || is_integer(dtype), "mel_weight_matrix: expected a number type, got ", dtype);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(lower_edge_hertz),
               step = (mel(upper_edge_hertz) - low) / static_cast<double>(num_mel_bins + 2);
  std::vector<std::int64_t> bins;
  for (std::int64_t i = 0; i < num_mel_bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(dft_length + 1) * hertz / static_cast<double>(sample_rate));
    bins.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(bin), 0, dft_length / 2));
  }
  const std::int64_t rows = dft_length / 2 + 1;
  std::vector<double> matrix(static_cast<std::size_t>(rows * num_mel_bins));
  for (std::int64_t i = 0; i < num_mel_bins; ++i)
    add_triangle(matrix, num_mel_bins, i, std::span(bins).subspan(static_cast<std::size_t>(i)).first<3>());
  return cast(from_values(matrix, {rows, num_mel_bins}), dtype);
}

}  // namespace gradus
