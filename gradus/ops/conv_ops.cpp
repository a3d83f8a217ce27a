/// The primitives of convolution: shapes, gradients, and batching as more examples, channels or groups.
#include "gradus/ops/conv_ops.h"
#include "gradus/graph/extents.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/window_geometry.h"

namespace gradus {
namespace {

const bool convolutions_have_extents =
    Extents::are<Convolution>(&Convolution::size) && Extents::are<TransposedConvolution>(&TransposedConvolution::size);

std::int64_t times(std::int64_t a, std::int64_t b) { return dimension::multiply(a, b); }

/// Requirements of all three; returns the number of spatial dimensions.
template <class Op> int check_operands(const Op& op, Specs in) {
  require(in.size() == 2, op.name, ": expected 2 operands, got ", in.size());
  const int count = in[0].shape.rank() - 2;
  require(count >= 1 && count <= 3 && in[1].shape.rank() == count + 2, op.name, ": operands are ", in[0], " and ",
          in[1], ", expected one to three spatial dimensions");
  const DType t = in[0].dtype;
  require(t == in[1].dtype && (t == f32 || t == f64 || t == i32 || t == i64), op.name, ": operands are ", in[0],
          " and ", in[1], ", expected one dtype of f32, f64, i32, i64");
  check_window_attribute(op.name, "strides", op.strides, count, 1);
  check_window_attribute(op.name, "dilations", op.dilations, count, 1);
  check_window_attribute(op.name, "paddings", op.before, count, 0);
  require(op.size.rank() == count, op.name, ": a size of ", op.size.rank(), " dimensions, expected ", count);
  for (std::int64_t d : op.size)
    require(d >= 0 || dimension::symbols_in(d) > 0, op.name, ": size ", brackets(op.size), " is not known");
  require(op.groups >= 1 || dimension::symbols_in(op.groups) > 0, op.name, ": groups must be at least 1, got ",
          op.groups);
  return count;
}

std::int64_t per_group(std::string_view op, std::int64_t channels, std::int64_t groups, const Spec& spec) {
  const auto each = dimension::divide(channels, groups);
  require(each.has_value(), op, ": ", dimension::to_text(channels), " channels of ", spec, " in ",
          dimension::to_text(groups), " groups");
  return *each;
}

Shape kernel_of(const Shape& weights) { return Shape(std::span(weights.begin(), weights.end() - 2)); }

Shape with_channels(const Shape& kernel, std::int64_t a, std::int64_t b) {
  Shape out = kernel;
  out.push_back(a);
  out.push_back(b);
  return out;
}

// Rows of vmap, dimension 0 of [n, ...], take part in a dimension of channels that is seen as [groups, c]: as further
// channels of each group, [groups, n, c], or as groups of their own, [n, groups, c].
enum class Rows { channels, groups };

/// [n, ..., groups*c, rest] -> [..., groups*n*c, rest]; `axis` is that of the channels.
Tensor rows_into(const Tensor& x, int axis, std::int64_t groups, Rows as) {
  const int at = x.shape().normalized(axis), rank = x.shape().rank();
  Shape apart = x.shape(), merged = x.shape();
  apart.set(at, groups);
  apart.insert(at + 1, per_group("vmap", x.shape()[at], groups, x.spec()));
  std::vector<int> order;
  for (int i = 1; i < at; ++i) order.push_back(i);
  if (as == Rows::channels) order.insert(order.end(), {at, 0, at + 1});
  else order.insert(order.end(), {0, at, at + 1});
  for (int i = at + 2; i <= rank; ++i) order.push_back(i);
  merged.set(at, times(x.shape()[0], x.shape()[at]));
  merged.erase(0);
  return reshape(transpose(reshape(x, apart), order), merged);
}

/// And back.
Tensor rows_from(const Tensor& y, int axis, std::int64_t groups, std::int64_t n, Rows as) {
  const int at = y.shape().normalized(axis), rank = y.shape().rank();
  const std::int64_t channels = per_group("vmap", y.shape()[at], n, y.spec());
  Shape apart = y.shape(), merged = y.shape();
  apart.set(at, as == Rows::channels ? groups : n);
  apart.insert(at + 1, as == Rows::channels ? n : groups);
  apart.insert(at + 2, per_group("vmap", channels, groups, y.spec()));
  const int row = as == Rows::channels ? at + 1 : at;
  std::vector<int> order{row};
  for (int i = 0; i < rank + 2; ++i)
    if (i != row) order.push_back(i);
  merged.set(at, channels);
  merged.insert(0, n);
  return reshape(transpose(reshape(y, apart), order), merged);
}

/// [n, batch, ...] -> [n*batch, ...]
Tensor rows_as_examples(const Tensor& x) {
  Shape shape = x.shape();
  shape.set(1, times(shape[0], shape[1]));
  shape.erase(0);
  return reshape(x, shape);
}

Tensor examples_as_rows(const Tensor& y, std::int64_t n, std::int64_t examples) {
  Shape shape = y.shape();
  shape.set(0, examples);
  shape.insert(0, n);
  return reshape(y, shape);
}

template <class Op> Op with_groups(Op op, std::int64_t groups) {
  op.groups = groups;
  return op;
}

/// The same geometry, for another result.
template <class Other, class Op> Other of_size(const Op& op, const Shape& size) {
  return {op.strides, op.dilations, op.before, size, op.groups};
}

}  // namespace

// ---------------------------------------------------------------- convolution

Spec Convolution::infer(Specs in) const {
  check_operands(*this, in);
  const Shape &x = in[0].shape, &w = in[1].shape;
  require(x[-1] == times(groups, w[-2]), name, ": the input ", in[0], " has ", dimension::to_text(x[-1]),
          " channels, weights ", in[1], " in ", dimension::to_text(groups), " groups take ",
          dimension::to_text(times(groups, w[-2])));
  per_group(name, w[-1], groups, in[1]);
  return {in[0].dtype, with_spatial(x, size, w[-1])};
}

Tensors Convolution::vjp(In in, const Tensor&, const Tensor& dy) const {
  const Shape &x = in[0].shape(), &w = in[1].shape();
  return {apply(of_size<TransposedConvolution>(*this, spatial_of(x)), dy, transpose(in[1])),
          apply(of_size<KernelConvolution>(*this, kernel_of(w)), in[0], dy)};
}

Tensor Convolution::batch(In in, std::uint32_t mask, std::int64_t n) const {
  const Tensor &x = in[0], &w = in[1];
  if (!has_rows(mask, 1)) return examples_as_rows(apply(*this, rows_as_examples(x), w), n, x.shape()[1]);
  const Rows as = has_rows(mask, 0) ? Rows::groups : Rows::channels;
  const Tensor weights = rows_into(w, -1, groups, as);
  const Tensor y = has_rows(mask, 0)
                       ? apply(with_groups(*this, times(n, groups)), rows_into(x, -1, groups, as), weights)
                       : apply(*this, x, weights);
  return rows_from(y, -1, groups, n, as);
}

int Convolution::carries(Specs in, int operand, int axis) const {
  if (operand == 0) return axis == -in[0].shape.rank() ? axis : 0;
  return axis == -1 ? -1 : 0;
}

// ---------------------------------------------------------------- by the input

Spec TransposedConvolution::infer(Specs in) const {
  check_operands(*this, in);
  const Shape &y = in[0].shape, &w = in[1].shape;
  require(y[-1] == w[-2], name, ": the input ", in[0], " has ", dimension::to_text(y[-1]), " channels, weights ", in[1],
          " take ", dimension::to_text(w[-2]));
  per_group(name, y[-1], groups, in[0]);
  return {in[0].dtype, with_spatial(y, size, times(groups, w[-1]))};
}

Tensors TransposedConvolution::vjp(In in, const Tensor&, const Tensor& dx) const {
  const Shape &y = in[0].shape(), &w = in[1].shape();
  return {apply(of_size<Convolution>(*this, spatial_of(y)), dx, transpose(in[1])),
          transpose(apply(of_size<KernelConvolution>(*this, kernel_of(w)), dx, in[0]))};
}

Tensor TransposedConvolution::batch(In in, std::uint32_t mask, std::int64_t n) const {
  const Tensor &y = in[0], &w = in[1];
  if (!has_rows(mask, 1)) return examples_as_rows(apply(*this, rows_as_examples(y), w), n, y.shape()[1]);
  if (!has_rows(mask, 0))
    return rows_from(apply(*this, y, rows_into(w, -1, 1, Rows::channels)), -1, groups, n, Rows::channels);
  const Tensor x = apply(with_groups(*this, times(n, groups)), rows_into(y, -1, groups, Rows::groups),
                         rows_into(w, -2, groups, Rows::groups));
  return rows_from(x, -1, groups, n, Rows::groups);
}

int TransposedConvolution::carries(Specs in, int operand, int axis) const {
  if (operand == 0) return axis == -in[0].shape.rank() ? axis : 0;
  return axis == -1 && groups == 1 ? -1 : 0;
}

// ---------------------------------------------------------------- by the weights

Spec KernelConvolution::infer(Specs in) const {
  check_operands(*this, in);
  const Shape &x = in[0].shape, &dy = in[1].shape;
  require(x[0] == dy[0], name, ": examples differ: operands are ", in[0], " and ", in[1]);
  per_group(name, dy[-1], groups, in[1]);
  return {in[0].dtype, with_channels(size, per_group(name, x[-1], groups, in[0]), dy[-1])};
}

Tensors KernelConvolution::vjp(In in, const Tensor&, const Tensor& dw) const {
  const Shape &x = in[0].shape(), &y = in[1].shape();
  return {apply(of_size<TransposedConvolution>(*this, spatial_of(x)), in[1], transpose(dw)),
          apply(of_size<Convolution>(*this, spatial_of(y)), in[0], dw)};
}

Tensor KernelConvolution::batch(In in, std::uint32_t mask, std::int64_t n) const {
  const Tensor &x = in[0], &dy = in[1];
  if (!has_rows(mask, 1))
    return rows_from(apply(*this, rows_into(x, -1, groups, Rows::channels), dy), -2, 1, n, Rows::channels);
  if (!has_rows(mask, 0))
    return rows_from(apply(*this, x, rows_into(dy, -1, groups, Rows::channels)), -1, groups, n, Rows::channels);
  const Tensor dw = apply(with_groups(*this, times(n, groups)), rows_into(x, -1, groups, Rows::groups),
                          rows_into(dy, -1, groups, Rows::groups));
  return rows_from(dw, -1, groups, n, Rows::groups);
}

int KernelConvolution::carries(Specs, int operand, int axis) const {
  if (axis != -1) return 0;
  return operand == 1 ? -1 : groups == 1 ? -2 : 0;
}

}  // namespace gradus
