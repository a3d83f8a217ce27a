/// Deformable convolution by gathers and a product.
#include "gradus/ops/deform_conv.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr auto op = "deform_conv2d";

void check_operands(const Tensor& x, const Tensor& filters, const Tensor& offsets, const Tensor& mask) {
  for (const auto& [name, operand] : {std::pair{"x", x}, {"filters", filters}, {"offsets", offsets}}) {
    require(operand.shape().rank() == 4, op, ": ", name, " is ", operand.spec(), ", expected 4 dimensions");
    require(operand.dtype() == x.dtype() && is_floating(x.dtype()), op, ": ", name, " is ", operand.spec(),
            ", expected a float type, one for all");
    for (std::int64_t d : operand.shape())
      require(d >= 0, op, ": ", name, " is ", operand.spec(), ", whose sizes must be known when tracing");
  }
  require(!mask.defined() || mask.dtype() == x.dtype(), op, ": the mask is ", mask.defined() ? mask.dtype() : f32,
          ", x is ", x.spec());
}

/// Where taps stand without offsets along spatial dimension i, [windows, 1, taps...] as numbers of dtype t.
Tensor tap_positions(const Windows& w, int i, DType t) {
  const Tensor o = reshape(range(w.size[i], t), {w.size[i], 1}), k = reshape(range(w.kernel[i], t), {1, w.kernel[i]});
  return o * static_cast<double>(w.strides[i]) + k * static_cast<double>(w.dilations[i]) -
         static_cast<double>(w.before[i]);
}

/// One of the two neighbours of a position along a dimension of n elements: its index, and its weight, which is 0 of
/// one outside.
struct Neighbour {
  Tensor index, weight;
};
Neighbour neighbour(const Tensor& position, std::int64_t n, bool upper) {
  const Tensor low = floor(position), part = position - low;
  const Tensor at = upper ? low + 1 : low, zero = fill_like(at, 0), last = fill_like(at, static_cast<double>(n - 1));
  const Tensor inside = logical_and(at >= zero, at <= last);
  return {cast(minimum(maximum(at, zero), last), i64), where(inside, upper ? part : 1 - part, zero)};
}

}  // namespace

Tensor deform_conv2d(const Tensor& x, const Tensor& filters, const Tensor& offsets, const Tensor& mask,
                     const DeformableOptions& options) {
  check_operands(x, filters, offsets, mask);
  if (is_narrow(x.dtype()))
    return cast(deform_conv2d(cast(x, f32), cast(filters, f32), cast(offsets, f32),
                              mask.defined() ? cast(mask, f32) : mask, options),
                x.dtype());
  const std::int64_t batch = x.shape()[0], channels = x.shape()[3], made = filters.shape()[3],
                     parts = options.offset_groups;
  const Windows w =
      windows_over(op, x.spec(), {filters.shape()[0], filters.shape()[1]},
                   {.strides = options.strides, .dilations = options.dilations, .paddings = options.paddings});
  const std::int64_t rows = x.shape()[1], columns = x.shape()[2], taps = w.kernel.size(), windows = w.size.size();
  require(rows > 0 && columns > 0, op, ": x is ", x.spec(), ", expected rows and columns");
  require(parts >= 1 && channels % parts == 0, op, ": ", channels, " channels in ", parts, " offset groups");
  require(filters.shape()[2] > 0 && channels % filters.shape()[2] == 0, op, ": x is ", x.spec(), ", filters are ",
          filters.spec());
  const std::int64_t groups = channels / filters.shape()[2];
  require(groups > 0 && made % groups == 0, op, ": ", made, " filters in ", groups, " groups");
  const Shape of_taps{batch, w.size[0], w.size[1], parts * taps};
  Shape of_offsets = of_taps;
  of_offsets.set(3, 2 * of_taps[3]);
  require(offsets.shape() == of_offsets, op, ": offsets are ", offsets.spec(), ", expected ", brackets(of_offsets));
  require(!mask.defined() || mask.shape() == of_taps, op, ": the mask is ", mask.defined() ? mask.shape() : Shape(),
          ", expected ", of_taps);

  // [batch, out_rows, out_columns, parts, kh, kw] of rows and of columns.
  const Shape grid{batch, w.size[0], w.size[1], parts, w.kernel[0], w.kernel[1]};
  const Tensor moved = reshape(offsets, {batch, w.size[0], w.size[1], parts, w.kernel[0], w.kernel[1] * 2});
  const auto component = [&](std::int64_t which) {
    Shape apart = grid;
    apart.push_back(2);
    return reshape(slice_within(reshape(moved, apart), -1, which, 1), grid);
  };
  const Tensor row = reshape(tap_positions(w, 0, x.dtype()), {w.size[0], 1, 1, w.kernel[0], 1}) + component(0);
  const Tensor column = reshape(tap_positions(w, 1, x.dtype()), {w.size[1], 1, 1, w.kernel[1]}) + component(1);

  // Pixels of all examples and parts one after the other, each with its channels.
  const std::int64_t width = channels / parts;
  const Tensor pixels = reshape(transpose(reshape(x, {batch, rows * columns, parts, width}), {0, 2, 1, 3}),
                                {batch * parts * rows * columns, width});
  const Tensor first = reshape(range(batch, i64), {batch, 1, 1, 1, 1, 1}) * (parts * rows * columns) +
                       reshape(range(parts, i64), {parts, 1, 1}) * (rows * columns);
  Shape with_channels = grid;
  with_channels.push_back(1);
  Tensor read;
  for (const bool below : {false, true})
    for (const bool right : {false, true}) {
      const Neighbour r = neighbour(row, rows, below), c = neighbour(column, columns, right);
      const Tensor value =
          gather(pixels, first + r.index * columns + c.index) * reshape(r.weight * c.weight, with_channels);
      read = read.defined() ? read + value : value;
    }
  if (mask.defined()) read = read * reshape(mask, with_channels);

  // [groups, batch * windows, taps * C/groups] times [groups, taps * C/groups, F/groups].
  const std::int64_t each = channels / groups;
  const Tensor by_tap = transpose(reshape(read, {batch * windows, parts, taps, width}), {0, 2, 1, 3});
  const Tensor left = reshape(transpose(reshape(by_tap, {batch * windows, taps, groups, each}), {2, 0, 1, 3}),
                              {groups, batch * windows, taps * each});
  const Tensor right = transpose(reshape(filters, {taps * each, groups, made / groups}), {1, 0, 2});
  return reshape(transpose(matmul(left, right), {1, 0, 2}), {batch, w.size[0], w.size[1], made});
}

}  // namespace gradus
