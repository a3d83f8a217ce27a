/// Gather, scatter-add, and checks of indices: shape rules, gradients, batching.
#include "gradus/ops/gather_ops.h"
#include "gradus/graph/extents.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {

namespace {

const bool gathers_have_extents = Extents::are<ScatterAdd>(&ScatterAdd::extent) &&
                                  Extents::are<CheckRange>(&CheckRange::limit) &&
                                  Extents::are<CheckIndices>(&CheckIndices::limit);

void require_index_dtype(std::string_view op, const Spec& indices) {
  require(indices.dtype == i32 || indices.dtype == i64, op, ": indices are ", indices, ", expected i32 or i64");
}

/// The inner dimensions of `axis` in a tensor of this rank; OutOfRange if it has no such axis.
int inner_rank(std::string_view op, int axis, int rank, const Spec& spec) {
  require<OutOfRange>(axis < 0 && axis >= -rank, op, ": axis ", axis, " is out of range for ", spec);
  return -1 - axis;
}

/// For an attribute, which may come from a text.
bool is_dimension(std::int64_t d) { return d >= 0 || dimension::symbols_in(d) > 0; }

/// The last `rank` dimensions.
Shape trailing(const Shape& shape, int rank) { return Shape(std::span(shape.end() - rank, shape.end())); }
Shape leading(const Shape& shape, int rank) { return Shape(std::span(shape.begin(), static_cast<std::size_t>(rank))); }

/// Dimension `from` moves to the front.
Tensor to_front(const Tensor& x, int from) {
  std::vector<int> order{from};
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != from) order.push_back(i);
  return transpose(x, order);
}

}  // namespace

Tensor offset_by_row(const Tensor& indices, const Shape& rows_and_outer, std::int64_t n) {
  const Tensor within = cast(check_range(indices, n, false), i64);
  Shape blocks = rows_and_outer, spread{rows_and_outer[0]};
  for (int i = 1; i < rows_and_outer.rank(); ++i) spread.push_back(1);
  for (int i = 1; i < indices.shape().rank(); ++i) {
    blocks.push_back(1);
    spread.push_back(indices.shape()[i]);
  }
  return reshape(within, spread) + reshape(iota(rows_and_outer, i64) * extent(n, i64), blocks);
}

Shape merged(const Shape& shape, int inner) {
  Shape out{leading(shape, shape.rank() - inner).size()};
  for (int i = -inner; i < 0; ++i) out.push_back(shape[i]);
  return out;
}

Spec Gather::infer(Specs in) const {
  require(in.size() == 2, name, ": expected 2 operands, got ", in.size());
  require_index_dtype(name, in[1]);
  const Shape &x = in[0].shape, &places = in[1].shape;
  const int outer = x.rank() - 1 - inner_rank(name, axis, x.rank(), in[0]);
  Shape out;
  for (int i = 0; i < outer; ++i) out.push_back(x[i]);
  for (std::int64_t d : places) out.push_back(d);
  for (int i = outer + 1; i < x.rank(); ++i) out.push_back(x[i]);
  return {in[0].dtype, out};
}

Tensors Gather::vjp(In in, const Tensor&, const Tensor& dy) const {
  return {apply(ScatterAdd{axis, in[0].shape()[axis]}, in[1], dy), {}};
}

/// Where each row has its own indices, the rows of x lie one after the other as one dimension.
Tensor Gather::batch(In in, std::uint32_t mask, std::int64_t) const {
  if (!has_rows(mask, 1)) return gradus::detail::apply(*this, in);
  const Shape& x = in[0].shape();
  const int inner = -1 - axis;
  if (!has_rows(mask, 0)) return to_front(gradus::detail::apply(*this, in), x.rank() - 1 - inner);
  const Tensor places = offset_by_row(in[1], leading(x, x.rank() - 1 - inner), x[axis]);
  return apply(*this, reshape(in[0], merged(x, inner)), places);
}

/// For x: inner dimensions stay, outer ones have the places behind them. For the indices: places have the inner ones
/// behind them.
int Gather::carries(Specs in, int operand, int along) const {
  if (operand == 1) return along + 1 + axis;
  if (along == axis) return 0;
  return along > axis ? along : along + 1 - in[1].shape.rank();
}

Spec ScatterAdd::infer(Specs in) const {
  require(in.size() == 2, name, ": expected 2 operands, got ", in.size());
  require_index_dtype(name, in[0]);
  require(in[1].dtype != boolean && is_dimension(extent), name, ": expected numbers and a known extent, got ", in[1]);
  const Shape &places = in[0].shape, &updates = in[1].shape;
  const int inner = inner_rank(name, axis, updates.rank() + 1, in[1]);
  const int outer = updates.rank() - places.rank() - inner;
  require<OutOfRange>(outer >= 0, name, ": axis ", axis, " is out of range for updates ", in[1], " and indices ",
                      in[0]);
  for (int i = 0; i < places.rank(); ++i)
    require(updates[outer + i] == places[i], name, ": updates ", in[1], " do not fit indices ", in[0]);
  Shape out;
  for (int i = 0; i < outer; ++i) out.push_back(updates[i]);
  out.push_back(extent);
  for (int i = updates.rank() - inner; i < updates.rank(); ++i) out.push_back(updates[i]);
  return {in[1].dtype, out};
}

Tensors ScatterAdd::vjp(In in, const Tensor&, const Tensor& dy) const { return {{}, apply(Gather{axis}, dy, in[0])}; }

Tensor ScatterAdd::batch(In in, std::uint32_t mask, std::int64_t n) const {
  if (!has_rows(mask, 0)) return gradus::detail::apply(*this, in);
  const Tensor updates = has_rows(mask, 1) ? in[1] : repeat_rows(in[1], n);
  const int inner = -1 - axis, outer = updates.shape().rank() - (in[0].shape().rank() - 1) - inner;
  Shape shape = leading(updates.shape(), outer);
  const Tensor places = offset_by_row(in[0], shape, extent);
  const std::int64_t blocks = dimension::multiply(shape.size(), extent);
  shape.push_back(extent);
  for (int i = -inner; i < 0; ++i) shape.push_back(updates.shape()[i]);
  return reshape(apply(ScatterAdd{axis, blocks}, places, updates), shape);
}

/// For the updates.
int ScatterAdd::carries(Specs in, int operand, int along) const {
  const int places = in[0].shape.rank(), inner = -1 - axis;
  if (operand != 1) return 0;
  if (along >= -inner) return along;
  return along < -inner - places ? along + places - 1 : 0;
}

Spec CheckRange::infer(Specs in) const {
  require(in.size() == 1, name, ": expected 1 operand, got ", in.size());
  require(is_integer(in[0].dtype) && is_dimension(limit), name, ": expected an integer type, got ", in[0]);
  return in[0];
}

Tensors CheckRange::vjp(In, const Tensor&, const Tensor&) const { return {}; }

Tensor CheckRange::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }

Spec CheckIndices::infer(Specs in) const {
  require(in.size() == 1, name, ": expected 1 operand, got ", in.size());
  require_index_dtype(name, in[0]);
  require(is_dimension(limit), name, ": expected a known limit, got ", limit);
  return in[0];
}

Tensors CheckIndices::vjp(In, const Tensor&, const Tensor&) const { return {}; }

Tensor CheckIndices::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }

Spec IndexedRows::infer(Specs in) const {
  require(in.size() == 2, name, ": expected 2 operands, got ", in.size());
  require_index_dtype(name, in[1]);
  require(in[0].shape.rank() > 0, name, ": ", in[0], " has no rows");
  const std::int64_t row = trailing(in[0].shape, in[0].shape.rank() - 1).size();
  require(dimension::multiply(in[1].shape.size(), row) == shape.size(), name, ": rows of ", in[0], " at ", in[1],
          " are not ", brackets(shape));
  return {in[0].dtype, shape};
}

View IndexedRows::view(const Shape&, const Shape& out) const {
  View view;
  for (int i = 0; i < out.rank(); ++i) view.strides.push_back(trailing(out, out.rank() - 1 - i).size());
  return view;
}

Tensors IndexedRows::vjp(In in, const Tensor&, const Tensor& dy) const {
  const int rank = in[0].shape().rank();
  Shape rows = in[1].shape();
  for (int i = 1; i < rank; ++i) rows.push_back(in[0].shape()[i]);
  return {apply(ScatterAdd{-rank, in[0].shape()[0]}, in[1], reshape(dy, rows)), {}};
}

Tensor IndexedRows::batch(In in, std::uint32_t mask, std::int64_t n) const {
  const int rank = in[0].shape().rank() - (has_rows(mask, 0) ? 1 : 0);
  Shape rows{n};
  for (const std::int64_t d : shape) rows.push_back(d);
  return reshape(Gather{-rank}.batch(in, mask, n), rows);
}

Tensor check_range(const Tensor& x, std::int64_t limit, bool labels) { return apply(CheckRange{limit, labels}, x); }

}  // namespace gradus
