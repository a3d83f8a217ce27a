/// Bilinear samples: shape rule, and by the definition: gradients.
#include "gradus/ops/sample_ops.h"
#include <array>
#include "gradus/graph/transforms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// One of two neighbours of every place along one axis, [n, places].
struct AxisNeighbour {
  Tensor index;   // i64, within the axis
  Tensor weight;  // from 0 to 1
  Tensor inside;  // whether it counts; empty: always
};

std::array<AxisNeighbour, 2> neighbours(const Tensor& position, std::int64_t n, bool zeros) {
  const Tensor last = extent(n, i64) - 1, size = extent(n, position.dtype());
  const auto at = [&](const Tensor& index, const Tensor& weight) {
    AxisNeighbour made{maximum(minimum(cast(stop_gradient(index), i64), last), zeros_like(last)), weight, {}};
    if (zeros) made.inside = logical_and(index >= 0, index <= size - 1);
    return made;
  };
  const Tensor below = floor(position), beyond = position - below;
  return {at(below, 1 - beyond), at(below + 1, beyond)};
}

/// The sum over the four neighbours, row by row.
Tensor composed(const LinearSample& op, In in) {
  const Shape& shape = in[0].shape();
  const std::int64_t pixels = dimension::multiply(shape[0], dimension::multiply(shape[1], shape[2]));
  const Tensor flat = reshape(in[0], {pixels, shape[3]});
  const Tensor above = iota({shape[0], 1}, i64) * extent(shape[1], i64);
  const auto columns = neighbours(in[2], shape[2], op.zeros);
  Tensor sum;
  for (const AxisNeighbour& row : neighbours(in[1], shape[1], op.zeros))
    for (const AxisNeighbour& column : columns) {
      const Tensor index = (above + row.index) * extent(shape[2], i64) + column.index;
      Tensor part = gather(flat, index) * expand_dims(row.weight * column.weight, -1);
      if (op.zeros) part = where(expand_dims(logical_and(row.inside, column.inside), -1), part, zeros_like(part));
      sum = sum.defined() ? sum + part : part;
    }
  return sum;
}

}  // namespace

Spec LinearSample::infer(Specs in) const {
  require(in.size() == 3, name, ": expected 3 operands, got ", in.size());
  for (std::size_t i = 0; i < 3; ++i)
    require((in[i].dtype == f32 || in[i].dtype == f64) && in[i].dtype == in[0].dtype, name, ": operand ", i, " is ",
            in[i], ", expected f32 or f64, one for all");
  const Shape &x = in[0].shape, &rows = in[1].shape;
  require(x.rank() == 4 && x[1] != 0 && x[2] != 0, name, ": x is ", in[0],
          ", expected [n, height, width, channels] with pixels");
  require(rows.rank() == 2 && rows[0] == x[0] && in[2].shape == rows, name, ": rows are ", in[1], ", columns ", in[2],
          ", expected [", dimension::to_text(x[0]), ", places] for x ", in[0]);
  return {in[0].dtype, {rows[0], rows[1], x[3]}};
}

Tensors LinearSample::vjp(In in, const Tensor&, const Tensor& dy) const {
  const Tensor y = composed(*this, in);
  return Transforms::vjp({&y, 1}, in, {&dy, 1}, in);
}

/// Images of all rows follow each other.
Tensor LinearSample::batch(In in, std::uint32_t mask, std::int64_t n) const {
  Tensors merged_rows;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Tensor x = has_rows(mask, i) ? in[i] : repeat_rows(in[i], n);
    merged_rows.push_back(reshape(x, merged(x.shape(), x.shape().rank() - 2)));
  }
  const Tensor y = gradus::detail::apply(*this, merged_rows);
  const std::int64_t images = in[0].shape()[has_rows(mask, 0) ? 1 : 0];
  return reshape(y, {n, images, y.shape()[1], y.shape()[2]});
}

/// Images and channels stay apart, and so do places.
int LinearSample::carries(Specs, int operand, int along) const {
  if (operand > 0) return along - 1;
  return along == -4 ? -3 : along == -1 ? -1 : 0;
}

Region linear_sample_definition(const AnyOp& op, Specs in) {
  const auto* sample = op.as<LinearSample>();
  if (!sample) return {};
  const RegionTrace trace(op->name, in, [&](In x) { return Tensors{composed(*sample, x)}; });
  return capture(trace).region;
}

}  // namespace gradus
