/// Rows of the convolutions: every padding, stride, dilation and group against the sums of their definitions.
#include <cmath>
#include "gradus/ops/constant.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/conv_ops.h"
#include "gradus/ops/deform_conv.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_conv {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Windows along each spatial dimension: how they stand, and how many there are.
struct Geometry {
  Numbers strides, dilations, before, size;
  std::int64_t groups = 1;
};

double& element(Array& array, const Numbers& index) {
  std::int64_t flat = 0;
  for (int i = 0; i < array.shape.rank(); ++i) flat = flat * array.shape[i] + index[static_cast<std::size_t>(i)];
  return array.values[static_cast<std::size_t>(flat)];
}
double element(const Array& array, const Numbers& index) { return element(const_cast<Array&>(array), index); }

Array zeros_of(const Shape& shape) { return {shape, std::vector<double>(static_cast<std::size_t>(shape.size()))}; }

Shape spatial_shape(std::int64_t first, const Numbers& middle, std::int64_t last) {
  Shape shape{first};
  for (std::int64_t d : middle) shape.push_back(d);
  shape.push_back(last);
  return shape;
}

Numbers index_of(std::int64_t first, const Numbers& middle, std::int64_t last) {
  Numbers index{first};
  index.insert(index.end(), middle.begin(), middle.end());
  index.push_back(last);
  return index;
}

/// Calls visit(window, tap, element) for every tap on an element of `input`.
void for_each_tap(const Geometry& g, const Numbers& input, const Shape& kernel,
                  const std::function<void(const Numbers&, const Numbers&, const Numbers&)>& visit) {
  Shape windows;
  for (std::int64_t d : g.size) windows.push_back(d);
  for_each_index(windows, [&](std::span<const std::int64_t> o, std::int64_t) {
    for_each_index(kernel, [&](std::span<const std::int64_t> k, std::int64_t) {
      Numbers at;
      for (std::size_t i = 0; i < o.size(); ++i) {
        at.push_back(o[i] * g.strides[i] + k[i] * g.dilations[i] - g.before[i]);
        if (at[i] < 0 || at[i] >= input[i]) return;
      }
      visit({o.begin(), o.end()}, {k.begin(), k.end()}, at);
    });
  });
}

Numbers spatial_of(const Array& x) { return {x.shape.begin() + 1, x.shape.end() - 1}; }

Array convolved(const Array& x, const Array& w, const Geometry& g) {
  const Shape kernel(std::span(w.shape.begin(), w.shape.end() - 2));
  const std::int64_t in = w.shape[-2], filters = w.shape[-1], out = filters / g.groups;
  Array y = zeros_of(spatial_shape(x.shape[0], g.size, filters));
  for_each_tap(g, spatial_of(x), kernel, [&](const Numbers& o, const Numbers& k, const Numbers& i) {
    for (std::int64_t n = 0; n < x.shape[0]; ++n)
      for (std::int64_t f = 0; f < filters; ++f)
        for (std::int64_t c = 0; c < in; ++c) {
          Numbers weight = k;
          weight.insert(weight.end(), {c, f});
          element(y, index_of(n, o, f)) += element(x, index_of(n, i, f / out * in + c)) * element(w, weight);
        }
  });
  return y;
}

/// Here g.size is that of the result; windows are the elements of x, filters [kernel..., out, in].
Array spread(const Array& x, const Array& w, Geometry g) {
  const Shape kernel(std::span(w.shape.begin(), w.shape.end() - 2));
  const std::int64_t out = w.shape[-2], channels = w.shape[-1], in = channels / g.groups;
  Array y = zeros_of(spatial_shape(x.shape[0], g.size, out * g.groups));
  const Numbers result = g.size;
  g.size = spatial_of(x);
  for_each_tap(g, result, kernel, [&](const Numbers& o, const Numbers& k, const Numbers& i) {
    for (std::int64_t n = 0; n < x.shape[0]; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t f = 0; f < out; ++f) {
          Numbers weight = k;
          weight.insert(weight.end(), {f, c});
          element(y, index_of(n, i, c / in * out + f)) += element(x, index_of(n, o, c)) * element(w, weight);
        }
  });
  return y;
}

Array depthwise_weights(const Array& w) {
  Array out = w;
  out.shape.set(-1, w.shape[-2] * w.shape[-1]);
  out.shape.set(-2, 1);
  return out;
}

Row row_of(std::string name, std::vector<std::string> covers, std::function<Tensor(In)> apply,
           std::vector<std::vector<Shape>> shapes, std::function<Array(Arrays)> reference) {
  Row row{.name = std::move(name), .covers = std::move(covers), .apply = std::move(apply), .operands = {{}, {}}};
  row.takes_other_integers = false;
  row.shapes = std::move(shapes);
  row.operands.resize(row.shapes[0].size());
  row.reference = std::move(reference);
  row.tolerance = 16;
  row.magnitude = 64;
  return row;
}

using Convolve = Tensor (*)(const Tensor&, const Tensor&, const ConvolutionOptions&);

/// `size` of the windows follows from the input; the last case may be of another size.
Row convolution_row(std::string name, Convolve convolve, const ConvolutionOptions& options,
                    std::vector<std::vector<Shape>> shapes, std::function<Geometry(const Array&)> geometry) {
  return row_of(
      std::move(name), {"convolution"}, [=](In in) { return convolve(in[0], in[1], options); }, std::move(shapes),
      [=](Arrays in) { return convolved(in[0], in[1], geometry(in[0])); });
}

std::vector<Row> convolutions() {
  std::vector<Row> rows;
  rows.push_back(convolution_row("conv1d, same, stride 2", conv1d, {.strides = {2}, .padding = Padding::same},
                                 {{{2, 7, 2}, {3, 2, 3}}, {{0, 7, 2}, {3, 2, 3}}, {{2, 6, 2}, {3, 2, 3}}},
                                 [](const Array& x) {
                                   // On an even size nothing stands before, on an odd one 1 on either side.
                                   return Geometry{{2}, {1}, {x.shape[1] % 2}, {(x.shape[1] + 1) / 2}};
                                 }));
  rows.push_back(convolution_row("conv2d", conv2d, {}, {{{1, 5, 4, 2}, {3, 2, 2, 3}}, {{2, 3, 3, 1}, {3, 3, 1, 1}}},
                                 [](const Array& x) {
                                   const std::int64_t r = x.shape[1] - 2, c = x.shape[2] == 4 ? 3 : 1;
                                   return Geometry{{1, 1}, {1, 1}, {0, 0}, {r, c}};
                                 }));
  rows.back().dtypes = {f32, f64, i32, i64};
  rows.push_back(convolution_row("conv2d, strides, dilations, paddings", conv2d,
                                 {.strides = {2, 1}, .paddings = {{1, 0}, {2, 1}}, .dilations = {1, 2}},
                                 {{{1, 5, 4, 2}, {2, 3, 2, 2}}},
                                 [](const Array&) { return Geometry{{2, 1}, {1, 2}, {1, 2}, {3, 3}}; }));
  rows.push_back(convolution_row("conv2d, groups", conv2d, {.padding = Padding::same}, {{{2, 3, 2, 4}, {2, 2, 2, 6}}},
                                 [](const Array&) { return Geometry{{1, 1}, {1, 1}, {0, 0}, {3, 2}, 2}; }));
  rows.push_back(convolution_row("conv3d, same", conv3d, {.strides = {1, 2, 1}, .padding = Padding::same},
                                 {{{1, 3, 3, 2, 2}, {2, 2, 1, 2, 2}}},
                                 [](const Array&) { return Geometry{{1, 2, 1}, {1, 1, 1}, {0, 0, 0}, {3, 2, 2}}; }));
  // Many blocks of rows, and more taps and channels than one block holds.
  rows.push_back(convolution_row("conv2d, many rows", conv2d, {.padding = Padding::same},
                                 {{{2, 20, 19, 3}, {3, 3, 3, 20}}},
                                 [](const Array&) { return Geometry{{1, 1}, {1, 1}, {1, 1}, {20, 19}}; }));
  rows.push_back(convolution_row("conv2d, many channels", conv2d, {.strides = {2}, .padding = Padding::same},
                                 {{{1, 5, 4, 200}, {3, 3, 200, 33}}},
                                 [](const Array&) { return Geometry{{2, 2}, {1, 1}, {1, 0}, {3, 2}}; }));
  for (std::size_t i = rows.size() - 2; i < rows.size(); ++i) {
    rows[i].dtypes = {f32};
    rows[i].magnitude = 4096;
  }
  const auto pointwise = [](Arrays in) {
    return convolved(in[0], in[1], Geometry{{1, 1}, {1, 1}, {0, 0}, {in[0].shape[1], in[0].shape[2]}});
  };
  rows.push_back(row_of(
      "conv2d, pointwise", {"matmul"}, [](In in) { return conv2d(in[0], in[1]); },
      {{{1, 2, 3, 4}, {1, 1, 4, 3}}, {{2, 0, 3, 4}, {1, 1, 4, 3}}}, pointwise));
  rows[1].mistakes = {
      {[] { conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 2, 8})); }, "take 2 at a time"},
      {[] { conv2d(zeros({1, 4, 4, 4}), zeros({3, 3, 2, 5})); }, "among 2 groups"},
      {[] { conv2d(zeros({1, 2, 4, 3}), zeros({3, 3, 3, 8})); }, "does not fit"},
      {[] { conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 3, 8}, f64)); }, "dtypes differ"},
      {[] { conv2d(zeros({1, 4, 3}), zeros({3, 3, 8})); }, "expected 4 dimensions"},
      {[] { conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 3, 8}), {.strides = {0}}); }, "strides must be at least 1"},
      {[] { conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 3, 8}), {.strides = {1, 1, 1}}); }, "3 strides for 2"},
      {[] { conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 3, 8}), {.paddings = {{0, 0}}}); }, "paddings of 1"},
      {[] { conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 3, 8}), {.paddings = {{-1, 0}, {0, 0}}}); }, "negative"},
      {[] { conv2d(zeros({1, 4, 4, 3}, boolean), zeros({3, 3, 3, 8}, boolean)); }, "cast it first"},
  };
  return rows;
}

std::vector<Row> depthwise() {
  std::vector<Row> rows;
  const auto same = [](std::int64_t stride, std::int64_t groups, std::int64_t r, std::int64_t c) {
    return Geometry{{stride, stride}, {1, 1}, {0, stride == 1 ? 1 : 0}, {r, c}, groups};
  };
  rows.push_back(row_of(
      "depthwise_conv2d", {"convolution"},
      [](In in) { return depthwise_conv2d(in[0], in[1], {.padding = Padding::same}); },
      {{{1, 4, 5, 3}, {2, 3, 3, 1}}, {{2, 4, 5, 17}, {2, 3, 17, 1}}},
      [=](Arrays in) {
        return convolved(in[0], depthwise_weights(in[1]), same(1, in[0].shape[-1], in[0].shape[1], in[0].shape[2]));
      }));
  rows.back().dtypes = {f32, f64, i32, i64};
  rows.push_back(row_of(
      "depthwise_conv2d, stride 2, two for each", {"convolution"},
      [](In in) { return depthwise_conv2d(in[0], in[1], {.strides = {2}, .padding = Padding::same}); },
      {{{1, 4, 5, 2}, {2, 1, 2, 2}}, {{1, 4, 5, 2}, {2, 1, 2, 1}}},
      [=](Arrays in) { return convolved(in[0], depthwise_weights(in[1]), same(2, 2, 2, 3)); }));
  rows.push_back(row_of(
      "depthwise_conv1d, dilated", {"convolution"},
      [](In in) { return depthwise_conv1d(in[0], in[1], {.paddings = {{2, 1}}, .dilations = {2}}); },
      {{{2, 6, 3}, {3, 3, 1}}},
      [](Arrays in) { return convolved(in[0], depthwise_weights(in[1]), {{1}, {2}, {2}, {5}, 3}); }));
  rows.push_back(row_of(
      "separable_conv2d", {"convolution", "matmul"}, [](In in) { return separable_conv2d(in[0], in[1], in[2]); },
      {{{1, 4, 3, 2}, {2, 2, 2, 2}, {1, 1, 4, 3}}},
      [](Arrays in) {
        const Geometry space{{1, 1}, {1, 1}, {0, 0}, {3, 2}, 2};
        return convolved(convolved(in[0], depthwise_weights(in[1]), space), in[2], {{1, 1}, {1, 1}, {0, 0}, {3, 2}});
      }));
  rows.back().magnitude = 256;
  rows[0].mistakes = {
      {[] { depthwise_conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 2, 1})); }, "is for 2"},
      {[] { separable_conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 3, 1}), zeros({1, 1, 4, 5})); }, "take 3 channels"},
      {[] { separable_conv2d(zeros({1, 4, 4, 3}), zeros({3, 3, 3, 1}), zeros({2, 1, 3, 5})); }, "expected 1 in"},
  };
  return rows;
}

std::vector<Row> transposed() {
  std::vector<Row> rows;
  const auto add = [&](std::string name, const ConvolutionTransposeOptions& options,
                       std::vector<std::vector<Shape>> shapes, const Geometry& geometry) {
    rows.push_back(row_of(
        std::move(name), {"transposed_convolution"}, [options](In in) { return conv_transpose(in[0], in[1], options); },
        std::move(shapes), [geometry](Arrays in) { return spread(in[0], in[1], geometry); }));
  };
  add("conv1d_transpose, valid, stride 3", {.strides = {3}, .padding = Padding::valid}, {{{2, 3, 2}, {2, 3, 2}}},
      {{3}, {1}, {0}, {9}});
  add("conv2d_transpose, same", {.strides = {2}}, {{{1, 3, 2, 2}, {3, 3, 3, 2}}, {{0, 3, 2, 2}, {3, 3, 3, 2}}},
      {{2, 2}, {1, 1}, {0, 0}, {6, 4}});
  rows.back().dtypes = {f32, f64, i32, i64};
  add("conv2d_transpose, output_padding, groups",
      {.strides = {2, 3}, .paddings = {{1, 1}, {0, 1}}, .output_padding = {1, 2}, .groups = 2},
      {{{1, 3, 2, 4}, {3, 2, 2, 4}}}, {{2, 3}, {1, 1}, {1, 0}, {6, 6}, 2});
  add("conv2d_transpose, dilations", {.padding = Padding::valid, .dilations = {2, 1}}, {{{1, 2, 3, 2}, {2, 2, 2, 2}}},
      {{1, 1}, {2, 1}, {0, 0}, {4, 4}});
  add("conv3d_transpose, same, output_shape",
      {.strides = {2, 1, 2}, .padding = Padding::same, .output_shape = {3, 2, 4}}, {{{1, 2, 2, 2, 2}, {3, 1, 2, 1, 2}}},
      {{2, 1, 2}, {1, 1, 1}, {1, 0, 0}, {3, 2, 4}});
  add("conv2d_transpose, paddings past the window", {.paddings = {{1, 1}, {2, 1}}}, {{{1, 4, 5, 2}, {1, 2, 3, 2}}},
      {{1, 1}, {1, 1}, {1, 2}, {2, 3}});
  add("conv2d_transpose, depthwise", {.strides = {2}, .groups = 3}, {{{2, 2, 3, 3}, {3, 2, 1, 3}}},
      {{2, 2}, {1, 1}, {0, 0}, {4, 6}, 3});
  rows[1].mistakes = {
      {[] { conv2d_transpose(zeros({1, 4, 4, 3}), zeros({3, 3, 8, 2})); }, "filters"},
      {[] { conv2d_transpose(zeros({1, 4, 4, 3}), zeros({3, 3, 8, 3}), {.output_padding = {1}}); }, "output_padding"},
      {[] { conv2d_transpose(zeros({1, 4, 4, 3}), zeros({3, 3, 8, 3}), {.output_shape = {5, 4}}); }, "output_shape 5"},
      {[] { conv2d_transpose(zeros({1, 4, 4, 3}), zeros({3, 3, 8, 3}), {.groups = 2}); }, "in 2 groups"},
  };
  return rows;
}

/// The gradient by the weights as a map of its own.
Array by_weights(const Array& x, const Array& dy, const Geometry& g, const Numbers& kernel) {
  const std::int64_t in = x.shape[-1] / g.groups, filters = dy.shape[-1], out = filters / g.groups;
  Shape taps;
  for (std::int64_t d : kernel) taps.push_back(d);
  Shape shape = taps;
  shape.push_back(in);
  shape.push_back(filters);
  Array dw = zeros_of(shape);
  for_each_tap(g, spatial_of(x), taps, [&](const Numbers& o, const Numbers& k, const Numbers& i) {
    for (std::int64_t n = 0; n < x.shape[0]; ++n)
      for (std::int64_t c = 0; c < in; ++c)
        for (std::int64_t f = 0; f < filters; ++f) {
          Numbers weight = k;
          weight.insert(weight.end(), {c, f});
          element(dw, weight) += element(x, index_of(n, i, f / out * in + c)) * element(dy, index_of(n, o, f));
        }
  });
  return dw;
}

std::vector<Row> weights() {
  std::vector<Row> rows;
  const auto add = [&](std::string name, const KernelConvolution& op, std::vector<std::vector<Shape>> shapes,
                       const Geometry& geometry, const Numbers& kernel) {
    rows.push_back(row_of(
        std::move(name), {"kernel_convolution"}, [op](In in) { return gradus::detail::apply(op, in); },
        std::move(shapes),
        [=](Arrays in) {
          Geometry g = geometry;
          g.size = spatial_of(in[1]);
          return by_weights(in[0], in[1], g, kernel);
        }));
    rows.back().takes_narrow = false;
  };
  add("kernel_convolution", {{2, 1}, {1, 2}, {1, 0}, {2, 2}, 1},
      {{{2, 4, 4, 2}, {2, 2, 2, 3}}, {{0, 4, 4, 2}, {0, 2, 2, 3}}}, {{2, 1}, {1, 2}, {1, 0}, {}}, {2, 2});
  rows.back().dtypes = {f32, f64, i32, i64};
  add("kernel_convolution, depthwise", {{1}, {1}, {1}, {3}, 3}, {{{2, 4, 3}, {2, 4, 3}}}, {{1}, {1}, {1}, {}, 3}, {3});
  add("kernel_convolution, many windows", {{1, 1}, {1, 1}, {1, 1}, {3, 3}, 1}, {{{3, 15, 14, 5}, {3, 15, 14, 40}}},
      {{1, 1}, {1, 1}, {1, 1}, {}}, {3, 3});
  rows.back().dtypes = {f32};
  rows.back().magnitude = 4096;
  return rows;
}

/// A tap that stands between elements reads them bilinearly; zeros are outside.
double between(const Array& x, std::int64_t n, double row, double column, std::int64_t c) {
  double sum = 0;
  for (std::int64_t r = 0; r < x.shape[1]; ++r)
    for (std::int64_t k = 0; k < x.shape[2]; ++k)
      sum += std::max(0.0, 1 - std::abs(row - static_cast<double>(r))) *
             std::max(0.0, 1 - std::abs(column - static_cast<double>(k))) * element(x, {n, r, k, c});
  return sum;
}

/// Two groups of channels, two parts with offsets of their own, stride 2 along columns, one row of padding before.
Array deformed(Arrays in) {
  const Array &x = in[0], &w = in[1], &offsets = in[2], &mask = in[3];
  Array y = zeros_of({x.shape[0], 3, 2, 4});
  for_each_index(y.shape, [&](std::span<const std::int64_t> o, std::int64_t flat) {
    for (std::int64_t tap = 0; tap < 4; ++tap)
      for (std::int64_t c = 0; c < 2; ++c) {
        const std::int64_t channel = o[3] / 2 * 2 + c, part = channel / 2, at = part * 4 + tap;
        const double row = static_cast<double>(o[1] + tap / 2 - 1) + element(offsets, {o[0], o[1], o[2], at * 2});
        const double column =
            static_cast<double>(2 * o[2] + tap % 2) + element(offsets, {o[0], o[1], o[2], at * 2 + 1});
        y.values[static_cast<std::size_t>(flat)] += between(x, o[0], row, column, channel) *
                                                    element(w, {tap / 2, tap % 2, c, o[3]}) *
                                                    element(mask, {o[0], o[1], o[2], at});
      }
  });
  return y;
}

std::vector<Row> deformable() {
  Row row = row_of(
      "deform_conv2d", {"gather", "matmul"},
      [](In in) {
        (void)in[3].spec();  // an empty mask is no mistake
        return deform_conv2d(in[0], in[1], in[2], in[3],
                             {.strides = {1, 2}, .paddings = {{1, 0}, {0, 0}}, .offset_groups = 2});
      },
      {{{1, 3, 4, 4}, {2, 2, 2, 4}, {1, 3, 2, 16}, {1, 3, 2, 8}}}, deformed);
  row.slack = 10;
  row.mistakes = {
      {[] { deform_conv2d(zeros({1, 3, 3, 1}), zeros({2, 2, 1, 1}), zeros({1, 2, 2, 4})); }, "offsets are"},
      {[] { deform_conv2d(zeros({1, 3, 3, 1}), zeros({2, 2, 1, 1}), zeros({1, 2, 2, 8}), zeros({1, 2, 2, 3})); },
       "the mask is"},
  };
  return {row};
}

const bool registered_deformable = add_rows(deformable());
const bool registered =
    add_rows(convolutions()) && add_rows(depthwise()) && add_rows(transposed()) && add_rows(weights());

}  // namespace
}  // namespace gradus::rows::rows_conv
