/// Rows of resampling, sampling by a grid and regions of interest, with references that loop over elements.
#include <cmath>
#include <limits>
#include "gradus/ops/elementwise.h"
#include "gradus/ops/grid_sample.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/resize.h"
#include "gradus/ops/shape.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_image {
namespace {

/// `x` with axis `at` of another size: element i is the sum over j of weight(i, j) x_j.
Array weighted(const Array& x, int at, std::int64_t size,
               const std::function<double(std::int64_t, std::int64_t)>& weight) {
  Array y{x.shape, {}};
  y.shape.set(at, size);
  for_each_index(y.shape, [&](std::span<const std::int64_t> index, std::int64_t) {
    double sum = 0;
    std::vector<std::int64_t> from(index.begin(), index.end());
    for (std::int64_t j = 0; j < x.shape[at]; ++j) {
      from[static_cast<std::size_t>(at)] = j;
      const double w = weight(index[static_cast<std::size_t>(at)], j);
      if (w != 0) sum += w * x.values[static_cast<std::size_t>(broadcast_offset(x.shape, from))];
    }
    y.values.push_back(sum);
  });
  return y;
}

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }
double keys(double x, double a) {
  x = std::abs(x);
  return x <= 1  ? (a + 2) * x * x * x - (a + 3) * x * x + 1
         : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                 : 0;
}

/// Weight of element j at a position, where those beyond the border count as those at it.
double with_border(double position, std::int64_t j, std::int64_t n, const std::function<double(double)>& kernel) {
  double sum = 0;
  for (std::int64_t k = -40; k < n + 40; ++k)
    if (std::clamp<std::int64_t>(k, 0, n - 1) == j) sum += kernel(static_cast<double>(k) - position);
  return sum;
}

double half_pixel(std::int64_t i, std::int64_t n, std::int64_t m) {
  return (static_cast<double>(i) + 0.5) * static_cast<double>(n) / static_cast<double>(m) - 0.5;
}

std::vector<Row> resizing() {
  Row linear{.name = "resize, bilinear",
             .apply = [](In in) { return resize(in[0], {5, 3}); },
             .operands = {{}},
             .shapes = {{{3, 4, 2}}, {{2, 2, 5, 1}}, {{0, 2, 3, 2}}},
             .magnitude = 16};
  linear.reference = [](Arrays in) {
    const int height = in[0].shape.rank() - 3;
    const auto along = [&](const Array& x, int at, std::int64_t m) {
      const std::int64_t n = x.shape[at];
      return weighted(x, at, m,
                      [=](std::int64_t i, std::int64_t j) { return with_border(half_pixel(i, n, m), j, n, triangle); });
    };
    return along(along(in[0], height, 5), height + 1, 3);
  };
  linear.mistakes = {{[] { resize(zeros({2, 2}), {2, 2}); }, "resize: expected images [..., height, width, channels]"},
                     {[] { resize(zeros({2, 2, 1}), {0, 2}); }, "sizes must be positive"}};
  Row cubic{.name = "resample, cubic with antialias",
            .apply =
                [](In in) {
                  return resample(in[0], {.axis = {1}, .sizes = {3}, .mode = Interpolation::cubic, .antialias = true});
                },
            .operands = {{}},
            .shapes = {{{2, 9}}, {{1, 8, 2}}},
            .magnitude = 32};
  cubic.reference = [](Arrays in) {
    const std::int64_t n = in[0].shape[1];
    const double scale = 3.0 / static_cast<double>(n);
    return weighted(in[0], 1, 3, [=](std::int64_t i, std::int64_t j) {
      const double at = half_pixel(i, n, 3);
      const auto kernel = [&](double x) { return keys(x * scale, -0.75); };
      double sum = 0;
      for (std::int64_t k = -40; k < 60; ++k) sum += kernel(static_cast<double>(k) - at);
      return with_border(at, j, n, kernel) / sum;
    });
  };
  Row many{.name = "resample, of many neighbours",
           .apply =
               [](In in) {
                 return resample(in[0], {.axis = {-1},
                                         .scales = {0.1},
                                         .mode = Interpolation::linear,
                                         .exclude_outside = true,
                                         .antialias = true});
               },
           .operands = {{}},
           .shapes = {{{2, 30}}},
           .magnitude = 32};
  many.reference = [](Arrays in) {
    return weighted(in[0], 1, 3, [](std::int64_t i, std::int64_t j) {
      const double at = half_pixel(i, 30, 3);
      double sum = 0;
      for (std::int64_t k = 0; k < 30; ++k) sum += triangle((static_cast<double>(k) - at) / 10);
      return triangle((static_cast<double>(j) - at) / 10) / sum;
    });
  };
  Row nearest{
      .name = "resample, nearest",
      .apply = [](In in) { return resample(in[0], {.scales = {2, 1, 0.5}, .coordinates = Coordinates::asymmetric}); },
      .operands = {{}},
      .shapes = {{{3, 2, 4}}, {{1, 0, 2}}},
      .dtypes = {f32, f64, i64, i32, u8, boolean}};
  nearest.reference = [](Arrays in) {
    const auto up = [](std::int64_t i, std::int64_t j) {
      return static_cast<double>((i + 1) / 2 + (i % 2 ? -1 : 0) == j);
    };
    const auto down = [](std::int64_t i, std::int64_t j) { return static_cast<double>(2 * i == j); };
    const Array taller = weighted(in[0], 0, 2 * in[0].shape[0], up);
    return weighted(taller, 2, in[0].shape[2] / 2, down);
  };
  nearest.mistakes = {
      {[] { resample(zeros({2, 3}), {.sizes = {2}}); }, "changes along 2 axes, but there are 1"},
      {[] { resample(zeros({2, 3}), {.axis = {0}, .sizes = {2}, .scales = {1}}); },
       "give sizes or scales, one of them"},
      {[] { resample(zeros({2, 3}), {.axis = {1, -1}, .sizes = {2, 2}}); }, "is named twice"},
      {[] { resample(zeros({2, 3}), {.axis = {1}, .scales = {-1}}); }, "scale -1 of axis 1"},
      {[] { resample(zeros({2, 3}), {.axis = {1}, .sizes = {std::int64_t{1} << 60}}); }, "that is too large"},
      {[] { resample(zeros({0}), {.sizes = {3}}); }, "must have a known, positive size"},
      {[] { resample(zeros({2}), {.sizes = {3}, .coordinates = Coordinates::tf_crop_and_resize}); },
       "needs a roi of 2"},
      {[] { resample(zeros({2}, boolean), {.sizes = {3}, .mode = Interpolation::linear}); },
       "can only be resampled by"},
  };
  Row centered{.name = "center_crop_pad",
               .apply = [](In in) { return center_crop_pad(in[0], {2, 6}); },
               .operands = {{}},
               .shapes = {{{5, 3}}, {{0, 9}}},
               .dtypes = {f32, f64, i64, i32, u8}};
  centered.reference = [](Arrays in) {
    const auto shifted = [](const Array& x, int at, std::int64_t m) {
      const std::int64_t n = x.shape[at], cut = n > m ? (n - m) / 2 : -((m - n) / 2);
      return weighted(x, at, m, [=](std::int64_t i, std::int64_t j) { return static_cast<double>(i + cut == j); });
    };
    return shifted(shifted(in[0], 0, 2), 1, 6);
  };
  return {std::move(linear), std::move(cubic), std::move(many), std::move(nearest), std::move(centered)};
}

// ---------------------------------------------------------------- grids

double mirrored(double x, double low, double high) {
  if (high <= low) return low;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  return x;
}

/// Element (i, j) of channel c of example n of x, padded.
double element(const Array& x, std::int64_t n, std::int64_t c, double i, double j, const GridSampleOptions& options) {
  const std::int64_t height = x.shape[2], width = x.shape[3];
  const double shift = options.align_corners ? 0 : 0.5;
  if (options.padding == GridPadding::reflection) {
    i = mirrored(i, -shift, static_cast<double>(height) - 1 + shift);
    j = mirrored(j, -shift, static_cast<double>(width) - 1 + shift);
  }
  const bool inside = i >= 0 && j >= 0 && i <= static_cast<double>(height) - 1 && j <= static_cast<double>(width) - 1;
  if (!inside && options.padding == GridPadding::zeros) return 0;
  const auto row = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::lround(i)), 0, height - 1);
  const auto column = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::lround(j)), 0, width - 1);
  return x.values[static_cast<std::size_t>(((n * x.shape[1] + c) * height + row) * width + column)];
}

Array sampled(const Array& x, const Array& grid, const GridSampleOptions& options) {
  Array y{{x.shape[0], x.shape[1], grid.shape[1], grid.shape[2]}, {}};
  for_each_index(y.shape, [&](std::span<const std::int64_t> at, std::int64_t) {
    const std::int64_t place = ((at[0] * grid.shape[1] + at[2]) * grid.shape[2] + at[3]) * 2;
    const auto position = [&](std::int64_t k, std::int64_t size) {
      const double n = static_cast<double>(size), g = grid.values[static_cast<std::size_t>(place + k)] + 1;
      return options.align_corners ? g / 2 * (n - 1) : (g * n - 1) / 2;
    };
    const double row = position(1, x.shape[2]), column = position(0, x.shape[3]);
    if (options.mode == Interpolation::nearest) {
      y.values.push_back(element(x, at[0], at[1], std::nearbyint(row), std::nearbyint(column), options));
      return;
    }
    const auto kernel = [&](double d) { return options.mode == Interpolation::linear ? triangle(d) : keys(d, -0.75); };
    double sum = 0;
    for (double i = std::floor(row) - 1; i <= std::floor(row) + 2; ++i)
      for (double j = std::floor(column) - 1; j <= std::floor(column) + 2; ++j)
        sum += kernel(row - i) * kernel(column - j) * element(x, at[0], at[1], i, j, options);
    y.values.push_back(sum);
  });
  return y;
}

Row grid_row(std::string name, GridSampleOptions options) {
  Row row{.name = "grid_sample, " + std::move(name),
          .apply = [options](In in) { return grid_sample(in[0], in[1], options); },
          .operands = {{}, {-1.3, 1.3}},
          .shapes = {{{2, 2, 3, 4}, {2, 2, 3, 2}}, {{1, 1, 2, 2}, {1, 0, 3, 2}}},
          .magnitude = 64};
  if (options.mode == Interpolation::linear) row.covers = {"linear_sample"};
  row.operands[1].has_gradient = options.mode != Interpolation::nearest;
  row.reference = [options](Arrays in) { return sampled(in[0], in[1], options); };
  row.slack = 16;  // kinks where positions cross elements
  return row;
}

/// The mean of bilinear samples of bins, of two samples a side.
Array aligned(const Array& x, const Array& rois) {
  const std::int64_t height = x.shape[2], width = x.shape[3];
  Array y{{rois.shape[0], x.shape[1], 2, 2}, {}};
  for_each_index(y.shape, [&](std::span<const std::int64_t> at, std::int64_t) {
    const double* roi = rois.values.data() + 4 * at[0];
    double sum = 0;
    for (int iy = 0; iy < 2; ++iy)
      for (int ix = 0; ix < 2; ++ix) {
        const double row = roi[1] - 0.5 + (static_cast<double>(at[2]) + (iy + 0.5) / 2) * (roi[3] - roi[1]) / 2;
        const double column = roi[0] - 0.5 + (static_cast<double>(at[3]) + (ix + 0.5) / 2) * (roi[2] - roi[0]) / 2;
        if (row < -1 || column < -1 || row > static_cast<double>(height) || column > static_cast<double>(width))
          continue;
        const double r = std::clamp(row, 0.0, static_cast<double>(height) - 1);
        const double c = std::clamp(column, 0.0, static_cast<double>(width) - 1);
        for (std::int64_t i = 0; i < height; ++i)
          for (std::int64_t j = 0; j < width; ++j)
            sum += triangle(r - static_cast<double>(i)) * triangle(c - static_cast<double>(j)) *
                   x.values[static_cast<std::size_t>((at[1] * height + i) * width + j)];
      }
    y.values.push_back(sum / 4);
  });
  return y;
}

/// The largest element of each of 2 x 2 bins, of corners that are rounded; 0 of an empty one.
Array pooled(const Array& x, const Array& corners) {
  const std::int64_t height = x.shape[2], width = x.shape[3];
  Array y{{corners.shape[0], x.shape[1], 2, 2}, {}};
  for_each_index(y.shape, [&](std::span<const std::int64_t> at, std::int64_t) {
    const auto corner = [&](int k) {
      return std::round(corners.values[static_cast<std::size_t>(4 * at[0] + k)] * 0.5);
    };
    const auto is_within = [](std::int64_t place, std::int64_t bin, double first, double last) {
      const double size = std::max(last - first + 1, 1.0) / 2, from = static_cast<double>(bin);
      const auto i = static_cast<double>(place) - first;
      return i >= std::floor(from * size) && i < std::ceil((from + 1) * size);
    };
    double best = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j)
        if (is_within(i, at[2], corner(1), corner(3)) && is_within(j, at[3], corner(0), corner(2)))
          best = std::max(best, x.values[static_cast<std::size_t>((at[1] * height + i) * width + j)]);
    y.values.push_back(std::isinf(best) ? 0 : best);
  });
  return y;
}

Row pooled_regions() {
  Row row{.name = "max_roi_pool",
          .apply =
              [](In in) {
                const Tensor first = zeros_like(slice(in[1], {0, 0}, {-1, 1}));
                return max_roi_pool(in[0], concat({first, in[1]}, 1), 2, 2, 0.5);
              },
          .operands = {{}, {.low = 0, .high = 12, .has_gradient = false}},
          .shapes = {{{1, 2, 4, 5}, {3, 4}}, {{1, 1, 6, 6}, {2, 4}}, {{1, 1, 3, 3}, {0, 4}}},
          .tolerance = 0};
  row.reference = [](Arrays in) { return pooled(in[0], in[1]); };
  row.mistakes = {
      {[] { max_roi_pool(zeros({1, 3, 3}), zeros({1, 5}), 2, 2); }, "expected floats [n, channels, height, width]"},
      {[] { max_roi_pool(zeros({1, 1, 3, 3}), zeros({1, 4}), 2, 2); }, "expected [r, 5]"},
      {[] { max_roi_pool(zeros({1, 1, 3, 3}), zeros({1, 5}), 0, 2); }, "the pooled size must be positive"},
      {[] { max_roi_pool(zeros({1, 1, 3, 3}), ones({1, 5}), 2, 2).observed(); }, "is outside"}};
  return row;
}

std::vector<Row> sampling() {
  std::vector<Row> rows = {
      grid_row("linear", {}),
      grid_row("linear at corners with borders", {.padding = GridPadding::border, .align_corners = true}),
      grid_row("linear mirrored", {.padding = GridPadding::reflection}),
      grid_row("cubic mirrored at corners",
               {.mode = Interpolation::cubic, .padding = GridPadding::reflection, .align_corners = true}),
      grid_row("cubic", {.mode = Interpolation::cubic}),
      grid_row("nearest", {.mode = Interpolation::nearest}),
  };
  rows[0].mistakes = {
      {[] { grid_sample(zeros({1, 2, 3}), zeros({1, 2, 2})); }, "the grid is f32[1,2,2], expected [1, places..., 1]"},
      {[] { grid_sample(zeros({2, 3}), zeros({1, 2, 2})); }, "expected [n, channels, d1 ... dk]"},
      {[] { grid_sample(zeros({1, 2, 0}), zeros({1, 2, 1})); }, "there is nothing to sample"},
      {[] { grid_sample(zeros({1, 1, 2}, i32), zeros({1, 2, 1})); }, "linear and cubic take floats"},
  };
  Row affine{.name = "affine_grid",
             .apply = [](In in) { return affine_grid(in[0], {2, 3}); },
             .operands = {{}},
             .shapes = {{{2, 2, 3}}},
             .magnitude = 8};
  affine.reference = [](Arrays in) {
    Array y{{in[0].shape[0], 2, 3, 2}, {}};
    for_each_index(y.shape, [&](std::span<const std::int64_t> at, std::int64_t) {
      const double* theta = in[0].values.data() + 6 * at[0] + 3 * at[3];
      const double column = (2 * static_cast<double>(at[2]) + 1) / 3 - 1,
                   row = (2 * static_cast<double>(at[1]) + 1) / 2 - 1;
      y.values.push_back(theta[0] * column + theta[1] * row + theta[2]);
    });
    return y;
  };
  rows.push_back(std::move(affine));
  Row regions{.name = "roi_align",
              .apply =
                  [](In in) {
                    return roi_align(in[0], in[1], cast(zeros_like(squeeze(slice(in[1], {0, 0}, {-1, 1}), {1})), i64),
                                     {.output_height = 2, .output_width = 2, .sampling_ratio = 2});
                  },
              .operands = {{}, {0, 5}},
              .shapes = {{{1, 2, 4, 5}, {3, 4}}, {{1, 1, 3, 3}, {0, 4}}},
              .magnitude = 64};
  regions.reference = [](Arrays in) { return aligned(in[0], in[1]); };
  regions.slack = 16;
  rows.push_back(std::move(regions));
  rows.push_back(pooled_regions());
  return rows;
}

const bool registered = add_rows(resizing()) && add_rows(sampling());

}  // namespace
}  // namespace gradus::rows::rows_image
