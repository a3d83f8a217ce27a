/// Rows of pooling: windows of every kind against loops over them, ties, NaN, and windows without elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/ops/constant.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/pool_ops.h"
#include "gradus/ops/shape.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_pool {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
const std::vector<DType> floats{f32, f64};

/// One dimension of windows.
struct Axis {
  std::int64_t window, stride, dilation, before, size;
};

/// An element of a window, and where it stands in its example.
struct Seen {
  double value;
  std::int64_t row, column;
};
/// Images [n, rows, columns, channels]: what each window sees, in order, as fold(elements, how many taps).
using Fold = std::function<double(const std::vector<Seen>&, std::int64_t channel)>;

double at(const Array& x, std::int64_t n, std::int64_t r, std::int64_t c, std::int64_t k) {
  return x.values[static_cast<std::size_t>(((n * x.shape[1] + r) * x.shape[2] + c) * x.shape[3] + k)];
}

Array pooled(const Array& x, const Axis& rows, const Axis& columns, const Fold& fold) {
  Array out{{x.shape[0], rows.size, columns.size, x.shape[3]}, {}};
  for_each_index(out.shape, [&](std::span<const std::int64_t> o, std::int64_t) {
    std::vector<Seen> seen;
    for (std::int64_t i = 0; i < rows.window; ++i)
      for (std::int64_t j = 0; j < columns.window; ++j) {
        const std::int64_t r = o[1] * rows.stride + i * rows.dilation - rows.before;
        const std::int64_t c = o[2] * columns.stride + j * columns.dilation - columns.before;
        if (r >= 0 && r < x.shape[1] && c >= 0 && c < x.shape[2]) seen.push_back({at(x, o[0], r, c, o[3]), r, c});
      }
    out.values.push_back(fold(seen, o[3]));
  });
  return out;
}

double largest(const std::vector<Seen>& seen, std::int64_t) {
  double best = -infinite;
  for (const Seen& s : seen) best = std::max(best, s.value);
  return best;
}
double total(const std::vector<Seen>& seen) {
  double sum = 0;
  for (const Seen& s : seen) sum += s.value;
  return sum;
}
double mean(const std::vector<Seen>& seen, std::int64_t) { return total(seen) / static_cast<double>(seen.size()); }

Row row_of(std::string name, std::vector<std::string> covers, std::function<Tensor(In)> apply,
           std::vector<Shape> shapes, std::function<Array(Arrays)> reference) {
  Row row{.name = std::move(name), .covers = std::move(covers), .apply = std::move(apply), .operands = {{}}};
  for (const Shape& shape : shapes) row.shapes.push_back({shape});
  row.reference = std::move(reference);
  row.tolerance = 16;
  row.magnitude = 8;
  return row;
}

std::vector<Row> largest_rows() {
  std::vector<Row> rows;
  rows.push_back(row_of(
      "max_pool2d", {"window_argmax", "window_select"}, [](In in) { return max_pool2d(in[0], {2}); },
      {{2, 4, 5, 1}, {0, 4, 5, 3}, {1, 5, 4, 3}},
      [](Arrays in) {
        return pooled(in[0], {2, 2, 1, 0, in[0].shape[1] / 2}, {2, 2, 1, 0, in[0].shape[2] / 2}, largest);
      }));
  rows.back().dtypes = {f32, f64, i64, i32, u8};
  rows.back().mistakes = {
      {[] { max_pool2d(zeros({1, 3, 3}), {2}); }, "two spatial dimensions"},
      {[] { max_pool2d(zeros({1, 3, 3, 1}), {4}); }, "does not fit"},
      {[] { max_pool2d(zeros({1, 3, 3, 1}), {}); }, "no size"},
      {[] { max_pool2d(zeros({1, 3, 3, 1}, boolean), {2}); }, "expected numbers"},
      {[] { max_pool2d(zeros({1, 3, 3, 1}), {2}, {.dilations = {0}}); }, "dilations"},
  };
  rows.push_back(row_of(
      "max_pool, overlapping, same", {"window_select"},
      [](In in) { return max_pool(in[0], {3, 2}, {.strides = {2, 1}, .padding = Padding::same}); },
      {{1, 4, 5, 2}, {1, 4, 5, 17}},
      [](Arrays in) { return pooled(in[0], {3, 2, 1, 0, 2}, {2, 1, 1, 0, 5}, largest); }));
  rows.push_back(row_of(
      "max_pool, dilated, windows without elements", {"window_select"},
      [](In in) { return max_pool(in[0], {2}, {.strides = {1}, .paddings = {{1, 1}, {3, 0}}, .dilations = {2}}); },
      {{1, 1, 4, 2}}, [](Arrays in) { return pooled(in[0], {2, 1, 2, 1, 1}, {2, 1, 2, 3, 5}, largest); }));
  rows.back().smooth = false;  // all windows lie beside the one row: constants, infinite ones
  rows.push_back(row_of(
      "max_pool, ceil_mode", {"window_select"},
      [](In in) { return max_pool(in[0], {2}, {.paddings = {{0, 0}, {1, 0}}, .ceil_mode = true}); }, {{1, 5, 4, 2}},
      [](Arrays in) { return pooled(in[0], {2, 2, 1, 0, 3}, {2, 2, 1, 1, 3}, largest); }));
  rows.push_back(row_of(
      "max_pool_with_argmax", {"window_argmax"},
      [](In in) { return max_pool_with_argmax(in[0], {3}, {.strides = {2}, .padding = Padding::same}).argmax; },
      {{2, 3, 4, 2}},
      [](Arrays in) {
        return pooled(in[0], {3, 2, 1, 1, 2}, {3, 2, 1, 0, 2}, [](const std::vector<Seen>& seen, std::int64_t k) {
          const Seen* best = &seen[0];
          for (const Seen& s : seen)
            if (s.value > best->value) best = &s;
          return static_cast<double>((best->row * 4 + best->column) * 2 + k);
        });
      }));
  rows.back().differentiable = false;
  rows.push_back(row_of("max_pool3d", {"window_select"}, [](In in) { return max_pool3d(in[0], {2, 1, 2}); },
                        {{1, 2, 3, 2, 2}}, {}));
  rows.push_back(row_of(
      "global_max_pool", {"max"}, [](In in) { return global_max_pool(in[0]); }, {{2, 3, 2, 2}},
      [](Arrays in) {
        Array out = pooled(in[0], {3, 1, 1, 0, 1}, {2, 1, 1, 0, 1}, largest);
        out.shape = {2, 2};
        return out;
      }));
  return rows;
}

std::vector<Row> mean_rows() {
  std::vector<Row> rows;
  rows.push_back(row_of(
      "avg_pool2d", {"convolution"}, [](In in) { return avg_pool2d(in[0], {2}); },
      {{2, 4, 5, 1}, {0, 4, 5, 3}, {1, 5, 4, 3}},
      [](Arrays in) {
        return pooled(in[0], {2, 2, 1, 0, in[0].shape[1] / 2}, {2, 2, 1, 0, in[0].shape[2] / 2}, mean);
      }));
  rows.back().mistakes = {{[] { avg_pool2d(zeros({1, 3, 3, 1}, i32), {2}); }, "float type"}};
  rows.push_back(row_of(
      "avg_pool, same", {"convolution"},
      [](In in) { return avg_pool(in[0], {3}, {.strides = {2}, .padding = Padding::same}); }, {{1, 4, 5, 2}},
      [](Arrays in) { return pooled(in[0], {3, 2, 1, 0, 2}, {3, 2, 1, 1, 3}, mean); }));
  rows.push_back(row_of(
      "avg_pool, count_include_pad, ceil_mode", {"convolution"},
      [](In in) {
        return avg_pool(in[0], {3, 2},
                        {.strides = {2}, .paddings = {{1, 1}, {0, 0}}, .ceil_mode = true, .count_include_pad = true});
      },
      {{1, 4, 3, 2}},
      [](Arrays in) {
        // The third window of rows begins at 3 and ends at 5, past the padding: it counts 2 of its 3 rows; the second
        // window of columns counts 1 of its 2.
        Array sums =
            pooled(in[0], {3, 2, 1, 1, 3}, {2, 2, 1, 0, 2}, [](const auto& seen, auto) { return total(seen); });
        for_each_index(sums.shape, [&](std::span<const std::int64_t> o, std::int64_t flat) {
          sums.values[static_cast<std::size_t>(flat)] /= (o[1] == 2 ? 2 : 3) * (o[2] == 1 ? 1 : 2);
        });
        return sums;
      }));
  for (const double p : {1.0, 2.0, 3.0}) {
    rows.push_back(row_of(
        text("lp_pool, ", p), {"convolution"}, [p](In in) { return lp_pool(in[0], {2}, p, {.strides = {1}}); },
        {{1, 3, 4, 2}},
        [p](Arrays in) {
          return pooled(in[0], {2, 1, 1, 0, 2}, {2, 1, 1, 0, 3}, [p](const std::vector<Seen>& seen, std::int64_t) {
            double sum = 0;
            for (const Seen& s : seen) sum += std::pow(std::abs(s.value), p);
            return std::pow(sum, 1 / p);
          });
        }));
    if (p > 2) rows.back().operands[0].gap = 1e-3;  // the slopes of its root overflow near 0
  }
  rows.push_back(row_of(
      "global_avg_pool", {"sum"}, [](In in) { return global_avg_pool(in[0]); }, {{2, 3, 2, 2}},
      [](Arrays in) {
        Array out = pooled(in[0], {3, 1, 1, 0, 1}, {2, 1, 1, 0, 1}, mean);
        out.shape = {2, 2};
        return out;
      }));
  rows.push_back(row_of(
      "global_lp_pool", {"sum"}, [](In in) { return global_lp_pool(in[0]); }, {{2, 3, 2, 2}},
      [](Arrays in) {
        Array out = pooled(in[0], {3, 1, 1, 0, 1}, {2, 1, 1, 0, 1}, [](const std::vector<Seen>& seen, std::int64_t) {
          double sum = 0;
          for (const Seen& s : seen) sum += s.value * s.value;
          return std::sqrt(sum);
        });
        out.shape = {2, 2};
        return out;
      }));
  for (Row& row : rows) row.tolerance = 64;
  return rows;
}

/// Parts of about equal size.
Array adaptive(const Array& x, std::int64_t rows, std::int64_t columns, const Fold& fold) {
  Array out{{x.shape[0], rows, columns, x.shape[3]}, {}};
  for_each_index(out.shape, [&](std::span<const std::int64_t> o, std::int64_t) {
    std::vector<Seen> seen;
    for (std::int64_t r = o[1] * x.shape[1] / rows; r * rows < (o[1] + 1) * x.shape[1]; ++r)
      for (std::int64_t c = o[2] * x.shape[2] / columns; c * columns < (o[2] + 1) * x.shape[2]; ++c)
        seen.push_back({at(x, o[0], r, c, o[3]), r, c});
    out.values.push_back(fold(seen, o[3]));
  });
  return out;
}

std::vector<Row> other_rows() {
  std::vector<Row> rows;
  rows.push_back(row_of(
      "adaptive_avg_pool", {"sum"}, [](In in) { return adaptive_avg_pool(in[0], {2, 3}); }, {{1, 5, 4, 2}},
      [](Arrays in) { return adaptive(in[0], 2, 3, mean); }));
  rows.push_back(row_of(
      "adaptive_max_pool", {"window_select"}, [](In in) { return adaptive_max_pool(in[0], {3, 2}); }, {{1, 5, 4, 2}},
      [](Arrays in) { return adaptive(in[0], 3, 2, largest); }));
  rows.push_back(row_of(
      "max_unpool", {"scatter_add"},
      [](In in) {
        const Tensor places = from_values(std::vector<std::int64_t>{3, 0, 7, 4, 5, 2, 1, 6}, {2, 2, 1, 2});
        return max_unpool(in[0], places, {2, 2});
      },
      {{2, 2, 1, 2}},
      [](Arrays in) {
        Array out{{2, 2, 2, 2}, std::vector<double>(16)};
        const std::size_t places[] = {3, 0, 7, 4, 5, 2, 1, 6};
        for (std::size_t i = 0; i < 8; ++i) out.values[i / 4 * 8 + places[i]] = in[0].values[i];
        return out;
      }));
  rows.push_back(row_of(
      "extract_patches", {"patches"},
      [](In in) {
        return extract_patches(in[0], {2, 1}, {.strides = {1, 2}, .padding = Padding::same, .rates = {2, 1}});
      },
      {{1, 3, 4, 2}, {0, 3, 4, 2}},
      [](Arrays in) {
        Array out{{in[0].shape[0], 3, 2, 4}, {}};
        for_each_index(out.shape, [&](std::span<const std::int64_t> o, std::int64_t) {
          const std::int64_t r = o[1] - 1 + o[3] / 2 * 2;  // a window of 2 that reaches over 3
          out.values.push_back(r >= 0 && r < 3 ? at(in[0], o[0], r, o[2] * 2, o[3] % 2) : 0);
        });
        return out;
      }));
  rows.back().dtypes = {f32, f64, i32, u8};
  rows.push_back(row_of(
      "fold_patches", {"fold"},
      [](In in) { return fold_patches(in[0], {4, 3}, {2, 2}, {.paddings = {{1, 0}, {0, 0}}}); }, {{1, 4, 2, 4}},
      [](Arrays in) {
        Array out{{1, 4, 3, 1}, std::vector<double>(12)};
        for_each_index(in[0].shape, [&](std::span<const std::int64_t> o, std::int64_t flat) {
          const std::int64_t r = o[1] + o[3] / 2 - 1, c = o[2] + o[3] % 2;
          if (r >= 0) out.values[static_cast<std::size_t>(r * 3 + c)] += in[0].values[static_cast<std::size_t>(flat)];
        });
        return out;
      }));
  rows.back().dtypes = {f32, f64, i32, u8};
  rows.back().mistakes = {
      {[] { fold_patches(zeros({1, 4, 2, 4}), {4, 4}, {2, 2}); }, "windows over"},
      {[] { fold_patches(zeros({1, 4, 2, 5}), {4, 4}, {2, 2}); }, "no multiple"},
      {[] { extract_patches(zeros({1, 4, 4, 5}), {5}); }, "does not fit"},
  };
  const Operand taps{.low = -1, .high = 4, .dtype = i32, .has_gradient = false};
  rows.push_back(row_of("window_select", {"window_select"},
                        [](In in) { return gradus::detail::apply(WindowSelect{{2, 2}, {2, 1}, {1, 2}, {1, 1}}, in); },
                        {}, {}));
  rows.back().operands.push_back(taps);
  rows.back().shapes = {{{1, 4, 3, 2}, {1, 3, 4, 2}}};
  rows.push_back(row_of(
      "window_deposit", {"window_deposit"},
      [](In in) { return gradus::detail::apply(WindowDeposit{{2, 2}, {2, 1}, {1, 2}, {1, 1}, {4, 3}}, in); }, {}, {}));
  rows.back().operands.push_back(taps);
  rows.back().shapes = {{{1, 3, 4, 2}, {1, 3, 4, 2}}};
  rows.back().dtypes = {f32, f64, i32};
  rows.back().takes_narrow = false;
  return rows;
}

const bool registered = add_rows(largest_rows()) && add_rows(mean_rows()) && add_rows(other_rows());

}  // namespace
}  // namespace gradus::rows::rows_pool
