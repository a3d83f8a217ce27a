/// Rows of Fourier transforms and windows, with references that are sums.
#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/signal.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_signal {
namespace {

using Number = std::complex<double>;

/// One signal: of m points, zeros behind what is given.
std::vector<Number> transform(std::vector<Number> x, std::int64_t m, double sign) {
  x.resize(static_cast<std::size_t>(m));
  std::vector<Number> y;
  for (std::int64_t k = 0; k < m; ++k) {
    Number sum = 0;
    for (std::int64_t t = 0; t < m; ++t)
      sum += x[static_cast<std::size_t>(t)] *
             std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k * t % m) / static_cast<double>(m));
    y.push_back(sign < 0 ? sum : sum / static_cast<double>(m));
  }
  return y;
}

/// [rows, n, parts] -> [rows, kept, 2], each row by `f`.
Array by_rows(const Array& x, const std::function<std::vector<Number>(std::vector<Number>)>& f, bool is_real = false) {
  const std::int64_t rows = x.shape[0], n = x.shape[1], parts = x.shape[2];
  Array y{{rows, 0, is_real ? 1 : 2}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<Number> signal;
    for (std::int64_t t = 0; t < n; ++t) {
      const double* at = x.values.data() + (row * n + t) * parts;
      signal.emplace_back(at[0], parts == 2 ? at[1] : 0);
    }
    const std::vector<Number> made = f(std::move(signal));
    y.shape.set(1, static_cast<std::int64_t>(made.size()));
    for (const Number& z : made) {
      y.values.push_back(z.real());
      if (!is_real) y.values.push_back(z.imag());
    }
  }
  return y;
}

Row dft_row(std::string name, DftOptions options, std::vector<Shape> shapes,
            std::function<std::vector<Number>(std::vector<Number>)> f, bool is_real = false) {
  Row row{.name = "dft, " + std::move(name),
          .apply = [options](In in) { return dft(in[0], options); },
          .operands = {{-1, 1}},
          .magnitude = 256};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.reference = [f = std::move(f), is_real](Arrays in) { return by_rows(in[0], f, is_real); };
  return row;
}

std::vector<Row> transforms() {
  std::vector<Row> rows;
  rows.push_back(dft_row("complex", {}, {{2, 6, 2}, {1, 1, 2}, {1, 48, 2}, {1, 1024, 2}}, [](auto x) {
    const auto n = static_cast<std::int64_t>(x.size());
    return transform(std::move(x), n, -1);
  }));
  Row lengths = dft_row(
      "of many lengths", {},
      {{2, 3, 2}, {1, 4, 2}, {3, 64, 2}, {1, 30, 2}, {1, 105, 2}, {1, 93, 2}, {1, 250, 2}, {1, 74, 2}}, [](auto x) {
        const auto n = static_cast<std::int64_t>(x.size());
        return transform(std::move(x), n, -1);
      });
  lengths.covers = {"fourier"};
  rows.push_back(std::move(lengths));
  Row halves = dft_row("real, of many lengths", {.onesided = true},
                       {{2, 1, 1}, {1, 2, 1}, {3, 64, 1}, {1, 30, 1}, {1, 15, 1}, {1, 62, 1}, {1, 500, 1}, {1, 74, 1}},
                       [](auto x) {
                         const auto n = static_cast<std::int64_t>(x.size());
                         auto y = transform(std::move(x), n, -1);
                         y.resize(static_cast<std::size_t>(n / 2 + 1));
                         return y;
                       });
  halves.covers = {"fourier"};
  rows.push_back(std::move(halves));
  rows.push_back(dft_row("of a prime length", {}, {{1, 257, 1}, {1, 13, 1}}, [](auto x) {
    const auto n = static_cast<std::int64_t>(x.size());
    return transform(std::move(x), n, -1);
  }));
  rows.push_back(
      dft_row("real, padded, onesided", {.dft_length = 9, .onesided = true}, {{2, 7, 1}, {1, 12, 1}}, [](auto x) {
        auto y = transform(std::move(x), 9, -1);
        y.resize(5);
        return y;
      }));
  rows.push_back(dft_row("inverse", {.inverse = true}, {{2, 5, 2}}, [](auto x) {
    const auto n = static_cast<std::int64_t>(x.size());
    return transform(std::move(x), n, 1);
  }));
  rows.push_back(dft_row(
      "inverse, onesided", {.inverse = true, .onesided = true}, {{2, 4, 2}, {1, 2, 2}},
      [](auto x) {
        const std::size_t half = x.size();
        for (std::size_t k = half; k < 2 * (half - 1); ++k) x.push_back(std::conj(x[2 * (half - 1) - k]));
        const auto n = static_cast<std::int64_t>(x.size());
        return transform(std::move(x), n, 1);
      },
      true));
  Row frames{.name = "stft",
             .apply = [](In in) { return stft(in[0], {.frame_step = 3, .window = cast(in[1], in[1].dtype())}); },
             .operands = {{-1, 1}, {}},
             .shapes = {{{2, 11, 1}, {4}}, {{1, 4, 1}, {4}}},
             .magnitude = 64};
  frames.reference = [](Arrays in) {
    const std::int64_t batch = in[0].shape[0], n = in[0].shape[1], count = 1 + (n - 4) / 3;
    Array y{{batch, count, 3, 2}, {}};
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t frame = 0; frame < count; ++frame) {
        std::vector<Number> x;
        for (std::int64_t t = 0; t < 4; ++t)
          x.emplace_back(in[0].values[static_cast<std::size_t>(b * n + 3 * frame + t)] *
                         in[1].values[static_cast<std::size_t>(t)]);
        const auto spectrum = transform(std::move(x), 4, -1);
        for (std::size_t k = 0; k < 3; ++k) y.values.insert(y.values.end(), {spectrum[k].real(), spectrum[k].imag()});
      }
    return y;
  };
  rows.push_back(std::move(frames));
  rows[0].mistakes = {
      {[] { dft(zeros({2, 3, 3})); }, "expected floats with a last dimension of 1 (real) or 2 (complex)"},
      {[] { dft(zeros({2, 3, 2}), {.axis = -1}); }, "is the last one, which holds real and imaginary parts"},
      {[] { dft(zeros({2, 3, 2}), {.onesided = true}); }, "onesided is of real signals"},
      {[] { dft(zeros({2, 0, 2})); }, "must be known and positive"},
      {[] { stft(zeros({1, 3, 1}), {.frame_length = 4}); }, "do not fit into f32[1,3,1]"},
  };
  return rows;
}

std::vector<Row> windows() {
  const auto angle = [](std::int64_t i, double period) {
    return 2 * std::numbers::pi * static_cast<double>(i) / period;
  };
  const auto row = [](std::string name, std::function<Tensor()> make, std::int64_t n,
                      std::function<double(std::int64_t)> f) {
    Row made{.name = std::move(name), .apply = [make](In) { return make(); }, .shapes = {{}}, .dtypes = {f32}};
    made.reference = [n, f](Arrays) {
      Array y{{n}, {}};
      for (std::int64_t i = 0; i < n; ++i) y.values.push_back(f(i));
      return y;
    };
    made.magnitude = 1;
    made.differentiable = false;
    return made;
  };
  return {
      row(
          "hann_window", [] { return hann_window(10); }, 10,
          [=](auto i) { return 0.5 - 0.5 * std::cos(angle(i, 10)); }),
      row(
          "hamming_window, symmetric", [] { return hamming_window(10, {.periodic = false}); }, 10,
          [=](auto i) { return 0.54 - 0.46 * std::cos(angle(i, 9)); }),
      row(
          "blackman_window", [] { return blackman_window(7); }, 7,
          [=](auto i) { return 0.42 - 0.5 * std::cos(angle(i, 7)) + 0.08 * std::cos(2 * angle(i, 7)); }),
      row(
          "window of one", [] { return hann_window(1, {.periodic = false}); }, 1, [](auto) { return 1.0; }),
  };
}

const bool registered = add_rows(transforms()) && add_rows(windows());

}  // namespace
}  // namespace gradus::rows::rows_signal
