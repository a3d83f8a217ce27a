/// Fourier transforms as matrix products. Composite lengths are transformed along each factor, with a rotation between
/// (Cooley and Tukey 1965), so that 4096 points cost three products of 16 columns.
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
#include "gradus/ops/widened.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

constexpr std::int64_t most_at_once = 32;                           // points of one matrix, if the length has factors
constexpr std::int64_t most_without_factors = 256;                  // points of one matrix, if it has none
constexpr std::int64_t most_host_elements = std::int64_t{1} << 26;  // of what is made on the host

/// Parts of a complex tensor [..., n]; an empty imaginary part is 0.
struct Complex {
  Tensor re, im;
};

Complex map(const Complex& x, const std::function<Tensor(const Tensor&)>& f) {
  return {f(x.re), x.im.defined() ? f(x.im) : Tensor()};
}

/// exp(sign 2 pi i r c / n) for rows r and columns c. The product is taken modulo n, so that angles are exact.
Complex rotations(std::int64_t rows, std::int64_t columns, std::int64_t n, double sign, DType t) {
  std::vector<double> re, im;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(r * c % n) / static_cast<double>(n);
      re.push_back(std::cos(angle));
      im.push_back(sign * std::sin(angle));
    }
  const Shape shape{rows, columns};
  return {cast(from_values(re, shape), t), cast(from_values(im, shape), t)};
}

/// x (a + ib) with `times` as the product.
template <class Product> Complex multiplied(const Complex& x, const Complex& by, Product times) {
  if (!x.im.defined()) return {times(x.re, by.re), times(x.re, by.im)};
  return {times(x.re, by.re) - times(x.im, by.im), times(x.re, by.im) + times(x.im, by.re)};
}

/// The largest factor of n up to its root and most_at_once; 1 if there is none.
std::int64_t factor_of(std::int64_t n) {
  std::int64_t found = 1;
  for (std::int64_t f = 2; f <= most_at_once && f * f <= n; ++f)
    if (n % f == 0) found = f;
  return found;
}

Complex transformed(const Complex& x, std::int64_t n, double sign);

Complex elementwise_product(const Complex& x, const Complex& y) {
  return multiplied(x, y, [](auto& p, auto& q) { return p * q; });
}

/// Lengths without small factors, as a convolution of 2^k points (Bluestein 1970): k t = (k^2 + t^2 - (k - t)^2) / 2.
Complex chirped(const Complex& x, std::int64_t n, double sign) {
  const DType t = x.re.dtype();
  std::int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  std::vector<double> re(static_cast<std::size_t>(m)), im(re.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const double angle = std::numbers::pi * static_cast<double>(i * i % (2 * n)) / static_cast<double>(n);
    for (const std::int64_t place : {i, (m - i) % m}) {
      re[static_cast<std::size_t>(place)] = std::cos(angle);
      im[static_cast<std::size_t>(place)] = sign * std::sin(angle);
    }
  }
  const Complex chirp{cast(from_values(re, {m}), t), cast(from_values(im, {m}), t)};
  const auto first = [n](const Tensor& part) { return slice_axis(part, -1, 0, n, "dft"); };
  const Complex rotation = map(chirp, first), filter{chirp.re, -chirp.im};
  Complex y = map(elementwise_product(x, rotation), [m](const Tensor& part) { return fitted(part, m); });
  y = elementwise_product(transformed(y, m, -1), transformed(filter, m, -1));
  y = map(transformed(y, m, 1), [&](const Tensor& part) { return first(part) / static_cast<double>(m); });
  return elementwise_product(y, rotation);
}

/// Along the last axis, of length n, not divided. n = a b: element a-major t = b t1 + t2 goes to k = k1 + a k2.
Complex transformed(const Complex& x, std::int64_t n, double sign) {
  const DType t = x.re.dtype();
  const std::int64_t a = n <= most_at_once ? 1 : factor_of(n);
  if (a == 1 && n > most_without_factors) return chirped(x, n, sign);
  if (a == 1) return multiplied(x, rotations(n, n, n, sign, t), [](auto& p, auto& q) { return matmul(p, q); });
  const std::int64_t b = n / a;
  const auto split_into = [](std::int64_t rows, std::int64_t columns) {
    return [=](const Tensor& part) {
      Shape shape = part.shape();
      shape.set(-1, rows);
      shape.push_back(columns);
      return reshape(part, shape);
    };
  };
  const auto exchanged = [](const Tensor& part) { return transpose(part); };
  Complex y = transformed(map(map(x, split_into(a, b)), exchanged), a, sign);  // [..., t2, k1]
  y = elementwise_product(y, rotations(b, a, n, sign, t));
  y = transformed(map(y, exchanged), b, sign);  // [..., k1, k2]
  return map(y, [&](const Tensor& part) {
    Shape shape = part.shape();
    shape.erase(shape.rank() - 1);
    shape.set(-1, n);
    return reshape(transpose(part), shape);
  });
}

/// The whole spectrum of a real signal of n points from its first half.
Complex mirrored(const Complex& half, std::int64_t n) {
  const std::int64_t rest = n - (n / 2 + 1);
  const auto behind = [&](const Tensor& part) { return reverse(slice_axis(part, -1, 1, rest, "dft"), {-1}); };
  if (rest == 0) return half;
  return {concat({half.re, behind(half.re)}, -1),
          half.im.defined() ? concat({half.im, -behind(half.im)}, -1) : Tensor()};
}

/// The axis of the signal goes last, the parts become tensors; and back.
Tensor moved(const Tensor& x, int from, int to) {
  std::vector<int> order;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return transpose(x, order);
}
Complex parts_of(const Tensor& x, int axis) {
  const auto part = [&](std::int64_t k) {
    const Tensor of = squeeze(slice_within(x, -1, k, 1), {-1});
    return moved(of, axis, of.shape().rank() - 1);
  };
  return {part(0), x.shape()[-1] == 2 ? part(1) : Tensor()};
}
Tensor joined(const Complex& y, int axis, bool is_real) {
  const auto back = [&](const Tensor& part) { return expand_dims(moved(part, part.shape().rank() - 1, axis), -1); };
  if (is_real) return back(y.re);
  return concat({back(y.re), back(y.im.defined() ? y.im : zeros_like(y.re))}, -1);
}

/// dft along `axis` (not negative) of length n.
Tensor spectrum(const Tensor& x, int axis, std::int64_t n, const DftOptions& options) {
  const DType t = x.dtype() == f64 ? f64 : f32;
  Complex parts = parts_of(cast(x, t), axis);
  const bool from_half = options.inverse && options.onesided;
  parts = map(parts, [&](const Tensor& part) { return fitted(part, from_half ? n / 2 + 1 : n); });
  if (from_half) parts = mirrored(parts, n);
  Complex y = transformed(parts, n, options.inverse ? 1 : -1);
  if (options.inverse) y = map(y, [&](const Tensor& part) { return part / static_cast<double>(n); });
  if (options.onesided && !options.inverse)
    y = map(y, [&](const Tensor& part) { return slice_axis(part, -1, 0, n / 2 + 1, "dft"); });
  return cast(joined(y, axis, from_half), x.dtype());
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
  require(length >= 0 || Context::current(), too_long());
  require(length != 0 && (n < 0 || length <= n) && options.frame_step > 0, too_long());
  const std::int64_t room = dimension::subtract(n, length);
  require_not_negative(room, too_long());
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
