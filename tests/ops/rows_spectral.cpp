/// Rows of cosine transforms, of Fourier transforms under TensorFlow's names, of frames and further windows; references
/// are sums.
#include <cmath>
#include <complex>
#include <numbers>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/spectral.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_spectral {
namespace {

constexpr double pi = std::numbers::pi;

/// Each row of the last axis by `f`.
Array by_rows(const Array& x, const std::function<std::vector<double>(std::vector<double>)>& f) {
  const auto n = static_cast<std::ptrdiff_t>(x.shape.back());
  Array y{x.shape, {}};
  for (auto row = x.values.begin(); row != x.values.end(); row += n) {
    const std::vector<double> made = f({row, row + n});
    y.shape.set(-1, static_cast<std::int64_t>(made.size()));
    y.values.insert(y.values.end(), made.begin(), made.end());
  }
  return y;
}

/// As the header defines it; `ortho` by the length of each basis vector, so that the matrix is orthogonal.
std::vector<double> cosines(std::vector<double> x, int type, std::size_t n, bool ortho) {
  x.resize(n);
  const auto size = static_cast<double>(n);
  // A whole number of parts of a half turn: exact within a turn.
  const auto cosine = [](double part, double parts) { return std::cos(pi * std::fmod(part, 2 * parts) / parts); };
  const auto factor = [&](double t, double k) {
    switch (type) {
      case 1: return t == 0 ? 1 : t == size - 1 ? cosine(k, 1) : 2 * cosine(t * k, size - 1);
      case 2: return 2 * cosine(k * (2 * t + 1), 2 * size);
      case 3: return t == 0 ? 1 : 2 * cosine(t * (2 * k + 1), 2 * size);
      default: return 2 * cosine((2 * k + 1) * (2 * t + 1), 4 * size);
    }
  };
  const auto length = [&](double fixed, bool of_row) {
    double sum = 0;
    for (double i = 0; i < size; ++i) sum += std::pow(of_row ? factor(i, fixed) : factor(fixed, i), 2);
    return std::sqrt(sum);
  };
  std::vector<double> y;
  for (double k = 0; k < size; ++k) {
    double sum = 0;
    for (std::size_t t = 0; t < n; ++t) {
      const auto at = static_cast<double>(t);
      sum += x[t] * factor(at, k) / (ortho ? length(type == 3 ? at : k, type != 3) : 1);
    }
    y.push_back(sum);
  }
  return y;
}

Row cosine_row(std::string name, Tensor (*op)(const Tensor&, DctOptions), DctOptions options, int type,
               std::vector<Shape> shapes) {
  Row row{.name = std::move(name), .apply = [=](In in) { return op(in[0], options); }, .operands = {{-1, 1}}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.reference = [=](Arrays in) {
    const std::int64_t n = options.n != 0 ? options.n : in[0].shape.back();
    return by_rows(in[0], [&](std::vector<double> x) {
      return cosines(std::move(x), type, static_cast<std::size_t>(n), !options.norm.empty());
    });
  };
  row.magnitude = 256;
  row.tolerance = 8;
  return row;
}

std::vector<Row> cosine_transforms() {
  std::vector<Row> rows;
  for (int type = 1; type <= 4; ++type) {
    const std::vector<Shape> shapes{{2, 5}, {300}, {3, 2, 2}, {7}};
    rows.push_back(cosine_row(text("dct of type ", type), dct, {.type = type}, type, shapes));
    const int back = type == 2 ? 3 : type == 3 ? 2 : type;
    if (type > 1)
      rows.push_back(cosine_row(text("idct of type ", type, ", ortho"), idct, {.type = type, .norm = "ortho"}, back,
                                {{2, 3, 1}, {258}, {5}}));
  }
  rows.push_back(cosine_row("dct, cut", dct, {.n = 3}, 2, {{2, 5}}));
  rows.push_back(cosine_row("dct, filled", dct, {.n = 6, .norm = "ortho"}, 2, {{2, 4}, {1, 2}}));
  rows[0].mistakes = {{[] { dct(zeros({2, 3}), {.type = 5}); }, "expected type 1, 2, 3 or 4, got 5"},
                      {[] { dct(zeros({2, 3}), {.norm = "unit"}); }, "\"ortho\", got \"unit\""},
                      {[] { dct(zeros({2, 3}), {.type = 1, .norm = "ortho"}); }, "type 1 has no norm"},
                      {[] { dct(zeros({2, 1}), {.type = 1}); }, "at least 2"},
                      {[] { dct(zeros({2, 3}, i32)); }, "expected a float type"},
                      {[] { dct(zeros({})); }, "has no axis"}};
  Row cepstral = cosine_row("mfccs_from_log_mel_spectrograms", nullptr, {}, 2, {{2, 4}, {5}});
  cepstral.apply = [](In in) { return mfccs_from_log_mel_spectrograms(in[0]); };
  cepstral.reference = [](Arrays in) {
    return by_rows(in[0], [](std::vector<double> x) {
      const std::size_t n = x.size();
      std::vector<double> y = cosines(std::move(x), 2, n, false);
      for (double& value : y) value /= std::sqrt(2.0 * static_cast<double>(n));
      return y;
    });
  };
  rows.push_back(std::move(cepstral));
  return rows;
}

using Number = std::complex<double>;

/// [n..., 2] as complex numbers, transformed.
std::vector<Number> transform(const std::vector<Number>& x, double sign) {
  std::vector<Number> y;
  const auto n = static_cast<double>(x.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    Number sum = 0;
    for (std::size_t t = 0; t < x.size(); ++t)
      sum += x[t] * std::polar(1.0, sign * 2 * pi * static_cast<double>(k * t % x.size()) / n);
    y.push_back(sign < 0 ? sum : sum / n);
  }
  return y;
}

Row of_one_signal(std::string name, Tensor (*op)(const Tensor&), Shape shape,
                  std::function<std::vector<double>(const std::vector<double>&)> f, Shape result) {
  Row row{.name = std::move(name), .apply = [op](In in) { return op(in[0]); }, .operands = {{-1, 1}}};
  row.shapes = {{shape}};
  row.reference = [=](Arrays in) { return Array{result, f(in[0].values)}; };
  row.magnitude = 32;
  return row;
}

std::vector<Number> paired(const std::vector<double>& x) {
  std::vector<Number> z;
  for (std::size_t i = 0; i < x.size(); i += 2) z.emplace_back(x[i], x[i + 1]);
  return z;
}
std::vector<double> apart(const std::vector<Number>& z) {
  std::vector<double> x;
  for (const Number& each : z) x.insert(x.end(), {each.real(), each.imag()});
  return x;
}

std::vector<Row> fourier() {
  return {
      of_one_signal("fft", fft, {6, 2}, [](const auto& x) { return apart(transform(paired(x), -1)); }, {6, 2}),
      of_one_signal("ifft", ifft, {5, 2}, [](const auto& x) { return apart(transform(paired(x), 1)); }, {5, 2}),
      of_one_signal(
          "rfft", [](const Tensor& x) { return rfft(x); }, {5},
          [](const auto& x) {
            std::vector<Number> y = transform({x.begin(), x.end()}, -1);
            y.resize(3);
            return apart(y);
          },
          {3, 2}),
      of_one_signal(
          "irfft", [](const Tensor& x) { return irfft(x, 5); }, {3, 2},
          [](const auto& x) {
            std::vector<Number> half = paired(x),
                                whole{half[0], half[1], half[2], std::conj(half[2]), std::conj(half[1])};
            std::vector<double> y;
            // The imaginary part of frequency 0 is not looked at.
            whole[0] = half[0].real();
            for (const Number& each : transform(whole, 1)) y.push_back(each.real());
            return y;
          },
          {5}),
      of_one_signal(
          "fftshift", [](const Tensor& x) { return fftshift(x); }, {5},
          [](const auto& x) { return std::vector<double>{x[3], x[4], x[0], x[1], x[2]}; }, {5}),
      of_one_signal(
          "ifftshift", [](const Tensor& x) { return ifftshift(x, {-1}); }, {5},
          [](const auto& x) { return std::vector<double>{x[2], x[3], x[4], x[0], x[1]}; }, {5}),
  };
}

std::vector<Row> frames() {
  Row whole{.name = "frame",
            .apply = [](In in) { return frame(in[0], 3, 2); },
            .operands = {{}},
            .shapes = {{{2, 8}}, {{7}}, {{2, 2}}},
            .dtypes = {f32, f64, i32}};
  whole.reference = [](Arrays in) {
    const std::int64_t n = in[0].shape.back(), count = n < 3 ? 0 : 1 + (n - 3) / 2;
    Array y = by_rows(in[0], [&](const std::vector<double>& x) {
      std::vector<double> all;
      for (std::int64_t f = 0; f < count; ++f)
        for (std::int64_t k = 0; k < 3; ++k) all.push_back(x[static_cast<std::size_t>(2 * f + k)]);
      return all;
    });
    y.shape.set(-1, count);
    y.shape.push_back(3);
    return y;
  };
  whole.mistakes = {{[] { frame(zeros({4}), 0, 1); }, "expected positive numbers"},
                    {[] { frame(zeros({}), 1, 1); }, "has no axis"}};
  Row padded{.name = "frame, padded",
             .apply = [](In in) { return frame(in[0], 3, 2, {.pad_end = true, .pad_value = 9, .axis = 0}); },
             .operands = {{}},
             .shapes = {{{4, 2}}, {{5, 1}}}};
  padded.reference = [](Arrays in) {
    const std::int64_t n = in[0].shape[0], inner = in[0].shape[1];
    Array y{{(n + 1) / 2, 3, inner}, {}};
    for_each_index(y.shape, [&](std::span<const std::int64_t> at, std::int64_t) {
      const std::int64_t t = 2 * at[0] + at[1];
      y.values.push_back(t < n ? in[0].values[static_cast<std::size_t>(t * inner + at[2])] : 9);
    });
    return y;
  };
  Row together{.name = "overlap_and_add",
               .apply = [](In in) { return overlap_and_add(in[0], 2); },
               .operands = {{}},
               .shapes = {{{2, 4, 3}}, {{3, 5}}, {{0, 3}}},
               .dtypes = {f32, f64, i32},
               .magnitude = 4};
  together.reference = [](Arrays in) {
    Array x = in[0];
    const std::int64_t length = x.shape[-1], count = x.shape[-2], n = count == 0 ? 0 : (count - 1) * 2 + length;
    Shape merged = x.shape;
    merged.erase(merged.rank() - 1);
    merged.set(-1, count * length);
    x.shape = merged;
    Array y = by_rows(x, [&](const std::vector<double>& row) {
      std::vector<double> sum(static_cast<std::size_t>(n), 0);
      for (std::size_t i = 0; i < row.size(); ++i)
        sum[i / static_cast<std::size_t>(length) * 2 + i % static_cast<std::size_t>(length)] += row[i];
      return sum;
    });
    y.shape.set(-1, n);
    return y;
  };
  together.mistakes = {{[] { overlap_and_add(zeros({4}), 1); }, "expected numbers [..., frames, frame_length]"},
                       {[] { overlap_and_add(zeros({4, 2}), 0); }, "a positive step"}};
  return {std::move(whole), std::move(padded), std::move(together)};
}

/// Values of tf.signal (TensorFlow 2.21) in f64.
Row constant_row(std::string name, std::function<Tensor()> make, Shape shape, std::vector<double> values) {
  Row row{.name = std::move(name), .apply = [make](In) { return make(); }, .shapes = {{}}, .dtypes = {f64}};
  row.reference = [=](Arrays) { return Array{shape, values}; };
  row.magnitude = 1;
  row.tolerance = 16;
  row.differentiable = false;
  row.takes_narrow = false;
  return row;
}

std::vector<Row> windows() {
  std::vector<Row> rows{
      constant_row("kaiser_window", [] { return kaiser_window(7, 12, f64); }, {7},
                   {5.277344132009767e-05, 0.054759364131249516, 0.5188447216723607, 1.0, 0.5188447216723607,
                    0.05475936413124952, 5.277344132009767e-05}),
      constant_row("kaiser_bessel_derived_window", [] { return kaiser_bessel_derived_window(6, 8, f64); }, {6},
                   {0.04225948861752729, 0.7071067811865475, 0.9991066687905676, 0.9991066687905676, 0.7071067811865475,
                    0.04225948861752729}),
      constant_row("vorbis_window", [] { return vorbis_window(6, f64); }, {6},
                   {0.10502933764982532, 0.7071067811865474, 0.9944691238207645, 0.9944691238207645, 0.7071067811865477,
                    0.10502933764982555}),
      constant_row(
          "linear_to_mel_weight_matrix",
          [] { return linear_to_mel_weight_matrix({.num_mel_bins = 3, .num_spectrogram_bins = 6, .dtype = f64}); },
          {6, 3},
          {0.0, 0.0, 0.0, 0.590380497707183, 0.40961950229281696, 0.0, 0.0, 0.5825248135042357, 0.4174751864957643, 0.0,
           0.0, 0.8787183621899322, 0.0, 0.0, 0.33741260533471934, 0.0, 0.0, 0.0}),
  };
  rows[0].mistakes = {{[] { kaiser_bessel_derived_window(5); }, "an even number"},
                      {[] { vorbis_window(4, i32); }, "a window is of floats"}};
  return rows;
}

const bool registered =
    add_rows(cosine_transforms()) && add_rows(fourier()) && add_rows(frames()) && add_rows(windows());

}  // namespace
}  // namespace gradus::rows::rows_spectral
