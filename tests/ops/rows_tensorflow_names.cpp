/// Rows of ops that are others under TensorFlow's names, of weighted statistics, and of dilation and erosion.
#include <cmath>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/tensorflow_names.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_tensorflow_names {
namespace {

/// The largest of x + filter, or the smallest of x - turned filter, of each window.
Array morphed(const Array& x, const Array& filter, std::int64_t stride, std::int64_t rate, bool same, bool erodes) {
  const std::int64_t rows = filter.shape[0], columns = filter.shape[1], channels = x.shape[3];
  const auto windows = [&](std::int64_t n, std::int64_t k) {
    return same ? (n + stride - 1) / stride : (n - (k - 1) * rate - 1) / stride + 1;
  };
  const auto before = [&](std::int64_t n, std::int64_t k) {
    return same ? std::max<std::int64_t>(0, (windows(n, k) - 1) * stride + (k - 1) * rate + 1 - n) / 2 : 0;
  };
  const std::int64_t height = x.shape[1], width = x.shape[2];
  Array y{{x.shape[0], windows(height, rows), windows(width, columns), channels}, {}};
  for_each_index(y.shape, [&](std::span<const std::int64_t> at, std::int64_t) {
    double best = -INFINITY;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t i = at[1] * stride + r * rate - before(height, rows);
        const std::int64_t j = at[2] * stride + c * rate - before(width, columns);
        if (i < 0 || j < 0 || i >= height || j >= width) continue;
        const std::int64_t tap = erodes ? (rows - 1 - r) * columns + columns - 1 - c : r * columns + c;
        const double value = x.values[static_cast<std::size_t>(((at[0] * height + i) * width + j) * channels + at[3])];
        const double added = filter.values[static_cast<std::size_t>(tap * channels + at[3])];
        best = std::max(best, (erodes ? -value : value) + added);
      }
    y.values.push_back(erodes ? -best : best);
  });
  return y;
}

std::vector<Row> morphology() {
  Row wide{.name = "dilation2d",
           .apply = [](In in) { return dilation2d(in[0], in[1], {.padding = Padding::same, .dilations = {2, 2}}); },
           .operands = {{}, {}},
           .shapes = {{{1, 4, 3, 2}, {2, 3, 2}}, {{2, 3, 3, 1}, {2, 2, 1}}}};
  wide.reference = [](Arrays in) { return morphed(in[0], in[1], 1, 2, true, false); };
  wide.mistakes = {{[] { dilation2d(zeros({1, 3, 3, 2}), zeros({2, 2, 1})); }, "expected [batch, height, width, C]"},
                   {[] { dilation2d(zeros({1, 3, 3, 1}), zeros({2, 2, 1}), {.strides = {0}}); }, "must be positive"},
                   {[] { dilation2d(zeros({1, 3, 3, 1}, i32), zeros({2, 2, 1}, i32)); }, "float type"}};
  Row narrow{.name = "erosion2d",
             .apply = [](In in) { return erosion2d(in[0], in[1], {.strides = {2}}); },
             .operands = {{}, {}},
             .shapes = {{{1, 5, 4, 2}, {2, 2, 2}}, {{2, 3, 3, 1}, {1, 3, 1}}}};
  narrow.reference = [](Arrays in) { return morphed(in[0], in[1], 2, 1, false, true); };
  return {std::move(wide), std::move(narrow)};
}

/// Along the last axis of [rows, n]: `f` of a row and its weights.
Array by_rows(Arrays in, const std::function<double(std::span<const double>, std::span<const double>)>& f) {
  Array y{{in[0].shape[0]}, {}};
  const auto n = static_cast<std::size_t>(in[0].shape[1]);
  for (std::size_t row = 0; row < static_cast<std::size_t>(in[0].shape[0]); ++row)
    y.values.push_back(f(std::span(in[0].values).subspan(row * n, n),
                         in.size() > 1 ? std::span(in[1].values).first(n) : std::span<const double>()));
  return y;
}
double mean_of(std::span<const double> x, std::span<const double> w) {
  double sum = 0, total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * w[i], total += w[i];
  return sum / total;
}

std::vector<Row> statistics() {
  Row mean{.name = "weighted_moments, mean",
           .apply = [](In in) { return weighted_moments(in[0], in[1], {.axis = {-1}}).mean; },
           .operands = {{}, {0.5, 2}},
           .shapes = {{{3, 4}, {4}}, {{1, 6}, {1, 6}}},
           .magnitude = 4};
  mean.reference = [](Arrays in) { return by_rows(in, mean_of); };
  mean.mistakes = {{[] { weighted_moments(ones({2}), ones({3, 2})); }, "do not broadcast to"},
                   {[] { weighted_moments(ones({2}, i32), ones({2}, i32)); }, "float type"}};
  Row variance{.name = "weighted_moments, variance",
               .apply = [](In in) { return weighted_moments(in[0], in[1], {.axis = {-1}}).variance; },
               .operands = {{}, {0.5, 2}},
               .shapes = {{{3, 4}, {4}}, {{1, 6}, {1, 6}}},
               .magnitude = 4};
  variance.reference = [](Arrays in) {
    return by_rows(in, [](auto x, auto w) {
      const double mean = mean_of(x, w);
      std::vector<double> squares;
      for (double each : x) squares.push_back((each - mean) * (each - mean));
      return mean_of(squares, w);
    });
  };
  Row whole{.name = "sufficient_statistics and normalize_moments",
            .apply =
                [](In in) {
                  const Moments found =
                      normalize_moments(sufficient_statistics(in[0], {.axis = {-1}}, full({}, 0.25, in[0].dtype())));
                  return found.mean + found.variance;
                },
            .operands = {{}},
            .shapes = {{{3, 4}}, {{1, 6}}},
            .tolerance = 16,
            .magnitude = 4};
  whole.reference = [](Arrays in) {
    return by_rows(in, [](auto x, auto) {
      const std::vector<double> ones(x.size(), 1);
      const double mean = mean_of(x, ones);
      double sum = 0;
      for (double each : x) sum += (each - mean) * (each - mean);
      return mean + sum / static_cast<double>(x.size());
    });
  };
  Row unit{.name = "normalize",
           .apply = [](In in) { return normalize(in[0], 1, {-1}).output * normalize(in[0], 2, {-1}).norm; },
           .operands = {{0.5, 2}},
           .shapes = {{{3, 4}}, {{1, 6}}},
           .tolerance = 16};
  unit.reference = [](Arrays in) {
    Array y{in[0].shape, {}};
    const Array ones = by_rows(in, [](auto x, auto) {
      double sum = 0, squares = 0;
      for (double each : x) sum += std::abs(each), squares += each * each;
      return std::sqrt(squares) / sum;
    });
    const auto n = static_cast<std::size_t>(in[0].shape[1]);
    for (std::size_t i = 0; i < in[0].values.size(); ++i) y.values.push_back(in[0].values[i] * ones.values[i / n]);
    return y;
  };
  return {std::move(mean), std::move(variance), std::move(whole), std::move(unit)};
}

/// Each name is the op that it stands for.
std::vector<Row> names() {
  Row all{.name = "further names",
          .apply =
              [](In in) {
                const Tensor& x = in[0];                                                      // [1, 4, 4, 1]
                const Tensor sum = accumulate_n({x, scalar_mul(full({}, 2, x.dtype()), x)});  // 3 x
                const Tensor blocks =
                    batch_to_space(space_to_batch(sum, {2, 2}, {{0, 0}, {0, 0}}), {2, 2}, {{0, 0}, {0, 0}});
                const Tensor third = realdiv(blocks, full({}, 3, x.dtype()));
                return atrous_conv2d(third, ones({1, 1, 1, 1}, x.dtype()), 2);
              },
          .operands = {{}},
          .shapes = {{{1, 4, 4, 1}}}};
  all.reference = [](Arrays in) { return in[0]; };
  Row response{.name = "lrn",
               .apply = [](In in) { return lrn(in[0], {.depth_radius = 0, .beta = 1}); },
               .operands = {{}},
               .shapes = {{{2, 3}}}};
  response.reference = [](Arrays in) { return by_element(in, [](Scalars x) { return x[0] / (1 + x[0] * x[0]); }); };
  response.tolerance = 8;
  Row inverse{.name = "inv",
              .apply = [](In in) { return inv(in[0]); },
              .operands = {{0.5, 2}},
              .shapes = {{{2, 1, 1}}},
              .magnitude = 1};
  inverse.reference = [](Arrays in) { return by_element(in, [](Scalars x) { return 1 / x[0]; }); };
  return {std::move(all), std::move(response), std::move(inverse)};
}

const bool registered = add_rows(morphology()) && add_rows(statistics()) && add_rows(names());

}  // namespace
}  // namespace gradus::rows::rows_tensorflow_names
