/// Deformable convolution by gathers and a product.
#include "gradus/ops/deform_conv.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/window_geometry.h"

namespace gradus {
namespace {

constexpr auto deform_conv_op = "deform_conv2d";

void check_operands(const Tensor& x, const Tensor& filters, const Tensor& offsets, const Tensor& mask) {
  for (const auto& [name, operand] : {std::pair{"x", x}, {"filters", filters}, {"offsets", offsets}}) {
    require(operand.shape().rank() == 4, deform_conv_op, ": ", name, " is ", operand.spec(), ", expected 4 dimensions");
    require(operand.dtype() == x.dtype() && is_floating(x.dtype()), deform_conv_op, ": ", name, " is ", operand.spec(),
            ", expected a float type, one for all");
    for (std::int64_t d : operand.shape())
      require(d >= 0, deform_conv_op, ": ", name, " is ", operand.spec(), ", whose sizes must be known when tracing");
  }
  require(!mask.defined() || mask.dtype() == x.dtype(), deform_conv_op, ": the mask is ",
          mask.defined() ? mask.dtype() : f32, ", x is ", x.spec());
}

/// Where taps stand without offsets along spatial dimension i, [windows, 1, taps...] as numbers of dtype t.
Tensor tap_positions(const Windows& w, int i, DType t) {
  const Tensor o = reshape(range(w.size[i], t), {w.size[i], 1}), k = reshape(range(w.kernel[i], t), {1, w.kernel[i]});
  return o * static_cast<double>(w.strides[i]) + k * static_cast<double>(w.dilations[i]) -
         static_cast<double>(w.before[i]);
}

/// One of the two neighbours of a position along a dimension of n elements: its index, and its weight, which is 0 of
/// one outside.
struct SampleNeighbour {
  Tensor index, weight;
};
SampleNeighbour sample_neighbour(const Tensor& position, std::int64_t n, bool upper) {
  const Tensor low = floor(position), part = position - low;
  const Tensor at = upper ? low + 1 : low, zero = fill_like(at, 0), last = fill_like(at, static_cast<double>(n - 1));
  const Tensor inside = logical_and(at >= zero, at <= last);
  return {cast(minimum(maximum(at, zero), last), i64), where(inside, upper ? part : 1 - part, zero)};
}

/// The problem in numbers.
struct Deformable {
  Windows windows;
  std::int64_t batch, rows, columns, channels;  // of x
  std::int64_t parts, groups, made;             // of offsets, of filters; filters
  std::int64_t taps() const { return windows.kernel.size(); }
  std::int64_t width() const { return channels / parts; }
  /// [batch, out_rows, out_columns, parts, kh, kw]
  Shape grid() const { return {batch, windows.size[0], windows.size[1], parts, windows.kernel[0], windows.kernel[1]}; }
};

Deformable checked(const Tensor& x, const Tensor& filters, const Tensor& offsets, const Tensor& mask,
                   const DeformableOptions& options) {
  Deformable d{.windows = windows_over(
                   deform_conv_op, x.spec(), {filters.shape()[0], filters.shape()[1]},
                   {.strides = options.strides, .dilations = options.dilations, .paddings = options.paddings}),
               .batch = x.shape()[0],
               .rows = x.shape()[1],
               .columns = x.shape()[2],
               .channels = x.shape()[3],
               .parts = options.offset_groups,
               .groups = 0,
               .made = filters.shape()[3]};
  require(d.rows > 0 && d.columns > 0, deform_conv_op, ": x is ", x.spec(), ", expected rows and columns");
  require(d.parts >= 1 && d.channels % d.parts == 0, deform_conv_op, ": ", d.channels, " channels in ", d.parts,
          " offset groups");
  require(filters.shape()[2] > 0 && d.channels % filters.shape()[2] == 0, deform_conv_op, ": x is ", x.spec(),
          ", filters are ", filters.spec());
  d.groups = d.channels / filters.shape()[2];
  require(d.groups > 0 && d.made % d.groups == 0, deform_conv_op, ": ", d.made, " filters in ", d.groups, " groups");
  const Shape of_taps{d.batch, d.windows.size[0], d.windows.size[1], d.parts * d.taps()};
  Shape of_offsets = of_taps;
  of_offsets.set(3, 2 * of_taps[3]);
  require(offsets.shape() == of_offsets, deform_conv_op, ": offsets are ", offsets.spec(), ", expected ",
          brackets(of_offsets));
  require(!mask.defined() || mask.shape() == of_taps, deform_conv_op, ": the mask is ",
          mask.defined() ? mask.shape() : Shape(), ", expected ", of_taps);
  return d;
}

/// Where taps read: their rows, or their columns, in the shape of the grid.
struct SamplePositions {
  Tensor row, column;
};
SamplePositions positions(const Deformable& d, const Tensor& offsets) {
  const Windows& w = d.windows;
  const Tensor moved = reshape(offsets, {d.batch, w.size[0], w.size[1], d.parts, w.kernel[0], w.kernel[1] * 2});
  const auto component = [&](std::int64_t which) {
    Shape apart = d.grid();
    apart.push_back(2);
    return reshape(slice_within(reshape(moved, apart), -1, which, 1), d.grid());
  };
  const DType t = offsets.dtype();
  const Tensor row = reshape(tap_positions(w, 0, t), {w.size[0], 1, 1, w.kernel[0], 1}) + component(0);
  const Tensor column = reshape(tap_positions(w, 1, t), {w.size[1], 1, 1, w.kernel[1]}) + component(1);
  return {row, column};
}

/// The values at these positions, between four pixels each: [grid..., width].
Tensor interpolated(const Deformable& d, const Tensor& x, const SamplePositions& at) {
  // Pixels of all examples and parts one after the other, each with its channels.
  const std::int64_t area = d.rows * d.columns;
  const Tensor pixels = reshape(transpose(reshape(x, {d.batch, area, d.parts, d.width()}), {0, 2, 1, 3}),
                                {d.batch * d.parts * d.rows * d.columns, d.width()});
  const Tensor first = reshape(range(d.batch, i64), {d.batch, 1, 1, 1, 1, 1}) * (d.parts * d.rows * d.columns) +
                       reshape(range(d.parts, i64), {d.parts, 1, 1}) * area;
  Shape with_channels = d.grid();
  with_channels.push_back(1);
  Tensor read;
  for (const bool below : {false, true})
    for (const bool right : {false, true}) {
      const SampleNeighbour r = sample_neighbour(at.row, d.rows, below),
                            c = sample_neighbour(at.column, d.columns, right);
      const Tensor value =
          gather(pixels, first + r.index * d.columns + c.index) * reshape(r.weight * c.weight, with_channels);
      read = read.defined() ? read + value : value;
    }
  return read;
}

/// [groups, batch * windows, taps * C/groups] times [groups, taps * C/groups, F/groups].
Tensor multiplied(const Deformable& d, const Tensor& read, const Tensor& filters) {
  const std::int64_t windows = d.windows.size.size(), taps = d.taps(), each = d.channels / d.groups;
  const Tensor by_tap = transpose(reshape(read, {d.batch * windows, d.parts, taps, d.width()}), {0, 2, 1, 3});
  const Tensor left = reshape(transpose(reshape(by_tap, {d.batch * windows, taps, d.groups, each}), {2, 0, 1, 3}),
                              {d.groups, d.batch * windows, taps * each});
  const Tensor right = transpose(reshape(filters, {taps * each, d.groups, d.made / d.groups}), {1, 0, 2});
  return reshape(transpose(matmul(left, right), {1, 0, 2}), {d.batch, d.windows.size[0], d.windows.size[1], d.made});
}

}  // namespace

Tensor deform_conv2d(const Tensor& x, const Tensor& filters, const Tensor& offsets, const Tensor& mask,
                     const DeformableOptions& options) {
  check_operands(x, filters, offsets, mask);
  if (is_narrow(x.dtype()))
    return cast(deform_conv2d(cast(x, f32), cast(filters, f32), cast(offsets, f32),
                              mask.defined() ? cast(mask, f32) : mask, options),
                x.dtype());
  const Deformable d = checked(x, filters, offsets, mask, options);
  Tensor read = interpolated(d, x, positions(d, offsets));
  if (mask.defined()) {
    Shape with_channels = d.grid();
    with_channels.push_back(1);
    read = read * reshape(mask, with_channels);
  }
  return multiplied(d, read, filters);
}

}  // namespace gradus
