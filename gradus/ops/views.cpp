/// Views and reshape: shape rules, index maps, gradients.
#include "gradus/ops/views.h"
#include <algorithm>
#include "gradus/graph/extents.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

const bool views_have_extents = Extents::are<Broadcast>(&Broadcast::shape) &&
                                Extents::are<Slice>(&Slice::begin, &Slice::size) &&
                                Extents::are<ReshapeOp>(&ReshapeOp::shape);

/// Attributes may come from a text: an unknown size is no dimension of a view.
void require_known(std::string_view op, const Shape& attribute) {
  require(std::find(attribute.begin(), attribute.end(), any_size) == attribute.end(), op, ": ", brackets(attribute),
          " has an unknown dimension");
}
void require_one_operand(std::string_view op, Specs in) {
  require(in.size() == 1, op, ": expected 1 operand, got ", in.size());
}

/// `shape` cut into runs of dimensions, one for each dimension of `merged`, which their sizes multiply to; nothing if
/// the two do not fit together so.
std::optional<std::vector<Shape>> runs_of(const Shape& shape, const Shape& merged) {
  std::vector<Shape> runs;
  int next = 0;
  for (std::int64_t whole : merged) {
    Shape run;
    std::int64_t product = 1;
    while (next < shape.rank() && (run.rank() == 0 || product != whole)) {
      product = dimension::multiply(product, shape[next]);
      run.push_back(shape[next++]);
    }
    if (product != whole) return {};
    runs.push_back(run);
  }
  return next == shape.rank() ? std::optional(runs) : std::nullopt;
}

/// A cotangent under another shape. One that repeats numbers, as that of a sum does, goes on repeating them: readers
/// walk it in place, where a reshape of a repetition would have to be written out.
Tensor reshaped_cotangent(const Tensor& dy, const Shape& shape) {
  const Node& node = *dy.node();
  if (!node.op.as<Broadcast>() || node.inputs.size() != 1) return reshape(dy, shape);
  const Tensor source(node.inputs[0]);
  const auto runs = runs_of(shape, dy.shape());
  if (!runs || source.shape().rank() != dy.shape().rank()) return reshape(dy, shape);
  Shape kept;
  for (int i = 0; i < dy.shape().rank(); ++i)
    for (std::int64_t d : (*runs)[static_cast<std::size_t>(i)]) kept.push_back(source.shape()[i] == 1 ? 1 : d);
  return broadcast_to(reshape(source, kept), shape);
}

/// `dy` with zeros around it: the box [begin, begin + its own size) of `shape`.
Tensor embed(const Tensor& dy, const Shape& begin, const Shape& shape) {
  Tensor out = dy;
  for (int i = 0; i < shape.rank(); ++i) {
    if (out.shape()[i] == shape[i]) continue;
    const std::int64_t after = dimension::subtract(shape[i], dimension::add(begin[i], out.shape()[i]));
    std::vector<Tensor> parts;
    auto add_zeros = [&](std::int64_t n) {
      if (n == 0) return;
      Shape gap = out.shape();
      gap.set(i, n);
      parts.push_back(zeros(gap, dy.dtype()));
    };
    add_zeros(begin[i]);
    parts.push_back(out);
    add_zeros(after);
    out = concat(parts, i);
  }
  return out;
}

}  // namespace

Shape with_leading(std::int64_t n, Shape shape) {
  shape.insert(0, n);
  return shape;
}

Spec Broadcast::infer(Specs in) const {
  require_one_operand(name, in);
  require_known(name, shape);
  require(broadcast_shape(in[0].shape, shape, name) == shape, name, ": ", in[0], " does not broadcast to ", shape);
  return {in[0].dtype, shape};
}

View Broadcast::view(const Shape& in, const Shape& out) const {
  const Shape dense = dense_strides(in);
  View view{.strides = out};
  for (int i = 1; i <= out.rank(); ++i) view.strides.set(-i, i <= in.rank() && in[-i] != 1 ? dense[-i] : 0);
  return view;
}

Tensors Broadcast::vjp(In in, const Tensor&, const Tensor& dy) const { return {sum_to(dy, in[0].shape())}; }

/// Dimensions of 1 take the place of those that are missing, so that n stays in front of them.
Tensor Broadcast::batch(In in, std::uint32_t, std::int64_t n) const {
  Shape aligned = in[0].shape();
  while (aligned.rank() <= shape.rank()) aligned.insert(1, 1);
  return broadcast_to(reshape(in[0], aligned), with_leading(n, shape));
}

Spec Transpose::infer(Specs in) const {
  require_one_operand(name, in);
  const int rank = in[0].shape.rank();
  require(order.rank() == rank, name, ": an order of ", order.rank(), " dimensions for ", in[0]);
  std::uint32_t seen = 0;
  Shape shape = in[0].shape;
  for (int i = 0; i < rank; ++i) {
    require(order[i] >= 0 && order[i] < rank && !(seen >> order[i] & 1), name, ": ", brackets(order),
            " is not an order of ", rank, " dimensions");
    seen |= 1u << order[i];
    shape.set(i, in[0].shape[-1 - static_cast<int>(order[i])]);
  }
  return {in[0].dtype, shape};
}

View Transpose::view(const Shape& in, const Shape&) const {
  const Shape dense = dense_strides(in);
  View view{.strides = dense};
  for (int i = 0; i < in.rank(); ++i) view.strides.set(i, dense[-1 - static_cast<int>(order[i])]);
  return view;
}

Tensors Transpose::vjp(In, const Tensor&, const Tensor& dy) const {
  const int rank = order.rank();
  Shape inverse = order;
  for (int i = 0; i < rank; ++i) inverse.set(-1 - static_cast<int>(order[i]), rank - 1 - i);
  return {apply(Transpose{inverse}, dy)};
}

Tensor Transpose::batch(In in, std::uint32_t, std::int64_t) const {
  return gradus::detail::apply(Transpose{with_leading(order.rank(), order)}, in);
}

Spec Slice::infer(Specs in) const {
  require_one_operand(name, in);
  require_known(name, begin);
  require_known(name, size);
  const int rank = in[0].shape.rank();
  require(begin.rank() == rank && size.rank() == rank, name, ": begin ", brackets(begin), " and size ", brackets(size),
          " do not fit ", in[0]);
  for (int i = 0; i < rank; ++i) {
    const std::int64_t end = dimension::add(begin[i], size[i]), extent = in[0].shape[i];
    require<OutOfRange>(begin[i] < 0 || end < 0 || extent < 0 || end <= extent, name, ": elements [",
                        dimension::to_text(begin[i]), ", ", dimension::to_text(end), ") of dimension ", i,
                        " are outside ", in[0]);
  }
  return {in[0].dtype, size};
}

View Slice::view(const Shape& in, const Shape&) const {
  View view{.strides = dense_strides(in)};
  for (int i = 0; i < in.rank(); ++i)
    view.offset = dimension::add(view.offset, dimension::multiply(begin[i], view.strides[i]));
  return view;
}

Tensors Slice::vjp(In in, const Tensor&, const Tensor& dy) const { return {embed(dy, begin, in[0].shape())}; }

Tensor Slice::batch(In in, std::uint32_t, std::int64_t n) const {
  return gradus::detail::apply(Slice{with_leading(0, begin), with_leading(n, size)}, in);
}

Spec Reverse::infer(Specs in) const {
  require_one_operand(name, in);
  require(dimensions >= 0 && dimensions < 1 << in[0].shape.rank(), name, ": dimensions ", dimensions, " do not fit ",
          in[0]);
  return in[0];
}

View Reverse::view(const Shape& in, const Shape&) const {
  View view{.strides = dense_strides(in)};
  for (int i = 0; i < in.rank(); ++i) {
    if (!(dimensions >> (in.rank() - 1 - i) & 1) || in[i] == 0) continue;
    view.backwards |= 1u << i;
    view.offset = dimension::add(view.offset, dimension::multiply(dimension::subtract(in[i], 1), view.strides[i]));
  }
  return view;
}

Tensors Reverse::vjp(In, const Tensor&, const Tensor& dy) const { return {apply(*this, dy)}; }

Tensor Reverse::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }

Spec ReshapeOp::infer(Specs in) const {
  require_one_operand(name, in);
  require_known(name, shape);
  require(in[0].shape.size() == shape.size(), name, ": ", in[0], " has ", dimension::to_text(in[0].shape.size()),
          " elements, shape ", shape, " has ", dimension::to_text(shape.size()));
  return {in[0].dtype, shape};
}

Tensors ReshapeOp::vjp(In in, const Tensor&, const Tensor& dy) const { return {reshaped_cotangent(dy, in[0].shape())}; }

Tensor ReshapeOp::batch(In in, std::uint32_t, std::int64_t n) const { return reshape(in[0], with_leading(n, shape)); }

}  // namespace gradus
