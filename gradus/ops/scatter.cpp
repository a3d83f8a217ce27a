/// Scatter: shape rule, gradients, and the public functions, which merge dimensions into one.
#include "gradus/ops/scatter.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

constexpr int as_kind(Reduction reduction) { return static_cast<int>(reduction); }

Tensor zeros_of(const Tensor& x) { return fill_like(x, 0); }

/// True for the last update at its place: [places].
Tensor is_last(const Tensor& indices, std::int64_t n) {
  const Tensor order = iota(indices.shape(), i64);
  const Tensor last = apply(Scatter{-1, as_kind(Reduction::none)}, fill({n}, -1, i64), indices, order);
  return equal(apply(Gather{-1}, last, indices), order);
}

/// [places...] among the dimensions of updates: [1..., places..., 1...].
Tensor among_updates(const Tensor& of_places, const Tensor& updates, int inner) {
  Shape shape;
  const int rank = updates.shape().rank(), first = rank - inner - of_places.shape().rank();
  for (int i = 0; i < rank; ++i) shape.push_back(i < first || i >= rank - inner ? 1 : of_places.shape()[i - first]);
  return reshape(of_places, shape);
}

/// x moved by `by` places towards higher or lower indices along axis 1; `filler` enters.
Tensor shifted(const Tensor& x, std::int64_t by, bool up, std::int64_t filler) {
  const std::int64_t kept = x.shape()[1] - by;
  Shape gap = x.shape();
  gap.set(1, by);
  const Tensor edge = fill(gap, filler, x.dtype());
  return up ? concat({edge, slice_within(x, 1, 0, kept)}, 1) : concat({slice_within(x, 1, by, kept), edge}, 1);
}

/// For x: [outer, P, inner] the products of those before (or behind) each element that are of its own segment;
/// `segment`: [1, P, 1], equal numbers stand together. By doubling, without a division, so it can be differentiated
/// where factors are 0.
Tensor product_before(const Tensor& x, const Tensor& segment, bool up) {
  const std::int64_t places = x.shape()[1];
  const Tensor one = fill({}, 1, x.dtype());
  Tensor product = x;  // of up to 2^k elements that end here
  for (std::int64_t by = 1; by < places; by *= 2) {
    const Tensor same = equal(segment, shifted(segment, by, up, -1));
    product = product * where(same, shifted(product, by, up, 1), one);
  }
  return places <= 1 ? fill_like(x, 1)
                     : where(equal(segment, shifted(segment, 1, up, -1)), shifted(product, 1, up, 1), one);
}

/// Per update the product of the others at its place.
Tensor product_of_others(const Tensor& indices, const Tensor& updates, int axis) {
  const std::int64_t places = indices.shape().size();
  require(places >= 0, "scatter: the gradient of products by a number of updates that is not known when tracing, ",
          updates.spec());
  std::int64_t outer = 1, inner = 1;
  const int rank = updates.shape().rank(), behind = -1 - axis;
  for (int i = 0; i < rank - behind - indices.shape().rank(); ++i)
    outer = dimension::multiply(outer, updates.shape()[i]);
  for (int i = rank - behind; i < rank; ++i) inner = dimension::multiply(inner, updates.shape()[i]);
  const Tensor flat = reshape(indices, {places}), order = argsort(flat);
  const Tensor segment = reshape(apply(Gather{-1}, flat, order), {1, places, 1});
  const Tensor sorted = apply(Gather{-2}, reshape(updates, {outer, places, inner}), order);
  const Tensor others = product_before(sorted, segment, true) * product_before(sorted, segment, false);
  return reshape(apply(Gather{-2}, others, argsort(order)), updates.shape());
}

}  // namespace

Spec Scatter::infer(Specs in) const {
  require(in.size() == 3, name, ": expected 3 operands, got ", in.size());
  const Spec &x = in[0], &indices = in[1], &updates = in[2];
  require(kind >= 0 && kind <= as_kind(Reduction::max), name, ": there is no reduction ", kind);
  require(indices.dtype == i32 || indices.dtype == i64, name, ": indices are ", indices, ", expected i32 or i64");
  require(x.dtype == updates.dtype, name, ": x is ", x, ", updates are ", updates, "; cast one of them");
  require(kind == 0 || x.dtype != boolean, name, ": expected numbers, got ", x, "; cast it first");
  require<OutOfRange>(axis < 0 && axis >= -x.shape.rank(), name, ": axis ", axis, " is out of range for ", x);
  Shape wanted;
  for (int i = 0; i < x.shape.rank() + axis; ++i) wanted.push_back(x.shape[i]);
  for (std::int64_t d : indices.shape) wanted.push_back(d);
  for (int i = x.shape.rank() + axis + 1; i < x.shape.rank(); ++i) wanted.push_back(x.shape[i]);
  require(updates.shape == wanted, name, ": updates are ", updates, ", expected ", wanted, " for x ", x,
          " and indices ", indices);
  return x;
}

Tensors Scatter::vjp(In in, const Tensor& y, const Tensor& dy) const {
  const Tensor &x = in[0], &indices = in[1], &updates = in[2];
  const Gather read{axis};
  switch (static_cast<Reduction>(kind)) {
    case Reduction::none: {
      const Tensor last = among_updates(is_last(indices, x.shape()[axis]), updates, -1 - axis);
      return {
          apply(*this, dy, indices, zeros_of(updates)), {}, where(last, apply(read, dy, indices), zeros_of(updates))};
    }
    case Reduction::add: return {dy, {}, apply(read, dy, indices)};
    case Reduction::mul:
      return {dy * apply(*this, fill_like(x, 1), indices, updates),
              {},
              apply(read, dy * x, indices) * product_of_others(indices, updates, axis)};
    case Reduction::min:
    case Reduction::max: break;
  }
  const Tensor from_x = equal(x, y), from_update = equal(updates, apply(read, y, indices));
  const Tensor share = in_computed_dtype(dy, [&](const Tensor& wide) {  // narrow floats would not count so far
    const Tensor ties = apply(Scatter{axis, as_kind(Reduction::add)}, cast(from_x, wide.dtype()), indices,
                              cast(from_update, wide.dtype()));
    return wide / maximum(ties, fill_like(ties, 1));  // no tie: NaN, which equals nothing
  });
  const Tensor rest = nan_of_nan(y, dy);
  return {where(from_x, share, rest), {}, where(from_update, apply(read, share, indices), apply(read, rest, indices))};
}

/// Where each row has its own indices, the rows of x lie one after the other as one dimension.
Tensor Scatter::batch(In in, std::uint32_t mask, std::int64_t n) const {
  const Tensor x = has_rows(mask, 0) ? in[0] : repeat_rows(in[0], n);
  const Tensor updates = has_rows(mask, 2) ? in[2] : repeat_rows(in[2], n);
  if (!has_rows(mask, 1)) return apply(*this, x, in[1], updates);
  const int inner = -1 - axis, outer = x.shape().rank() - 1 - inner;
  const Shape rows_and_outer(std::span(x.shape().begin(), static_cast<std::size_t>(outer)));
  const Tensor places = offset_by_row(in[1], rows_and_outer, x.shape()[axis]);
  return reshape(apply(*this, reshape(x, merged(x.shape(), inner)), places, updates), x.shape());
}

int Scatter::carries(Specs in, int operand, int along) const {
  const int places = in[1].shape.rank(), inner = -1 - axis;
  if (operand == 0) return along == axis ? 0 : along;
  if (operand == 1) return 0;
  if (along >= -inner) return along;
  return along < -inner - places ? along + places - 1 : 0;
}

namespace {

/// Sums and products of floats narrower than f32 are accumulated in f32.
Tensor scatter(const Tensor& x, const Tensor& indices, const Tensor& updates, int axis, Reduction reduction) {
  const bool accumulates = reduction == Reduction::add || reduction == Reduction::mul;
  const Scatter op{axis, as_kind(reduction)};
  if (!accumulates || !is_narrow(x.dtype()) || x.dtype() != updates.dtype()) return apply(op, x, indices, updates);
  return in_computed_dtype(x, updates, [&](const Tensor& a, const Tensor& b) { return apply(op, a, indices, b); });
}

/// The positions of scatter_nd within the first dimensions of `shape`, and what becomes of that.
struct SlicePositions {
  Tensor flat;
  Shape merged;  // [n1 * ... * nk, inner...]
};

SlicePositions positions_of(std::string_view op, const Tensor& indices, const Tensor& updates, const Shape& shape) {
  require(indices.shape().rank() > 0, op, ": indices are ", indices.spec(), ", expected [places..., k]");
  const std::int64_t depth = indices.shape().back();
  require(depth >= 1 && depth <= shape.rank(), op, ": positions of ", dimension::to_text(depth),
          " numbers for an array of shape ", shape);
  const auto k = static_cast<int>(depth);
  const Shape first(std::span(shape.begin(), static_cast<std::size_t>(k)));
  Shape merged{first.size()}, wanted = indices.shape();
  wanted.erase(-1);
  for (int i = k; i < shape.rank(); ++i) {
    merged.push_back(shape[i]);
    wanted.push_back(shape[i]);
  }
  require(updates.shape() == wanted, op, ": updates are ", updates.spec(), ", expected shape ", wanted,
          " for an array of shape ", shape, " and indices ", indices.spec());
  return {flat_positions(op, indices, first), merged};
}

Tensor scatter_into(std::string_view op, const Tensor& x, const Tensor& indices, const Tensor& updates,
                    Reduction reduction) {
  require(x.dtype() == updates.dtype(), op, ": x is ", x.spec(), ", updates are ", updates.spec(),
          "; cast one of them");
  const SlicePositions at = positions_of(op, indices, updates, x.shape());
  return reshape(scatter(reshape(x, at.merged), at.flat, updates, -at.merged.rank(), reduction), x.shape());
}

}  // namespace

Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape) {
  require(updates.dtype() != boolean, "scatter_nd: updates are ", updates.spec(), ", expected numbers; cast them");
  const SlicePositions at = positions_of("scatter_nd", indices, updates, shape);
  return reshape(apply(ScatterAdd{-at.merged.rank(), at.merged[0]}, at.flat, updates), shape);
}

Tensor tensor_scatter_nd_update(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return scatter_into("tensor_scatter_nd_update", x, indices, updates, Reduction::none);
}
Tensor tensor_scatter_nd_add(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return scatter_into("tensor_scatter_nd_add", x, indices, updates, Reduction::add);
}
Tensor tensor_scatter_nd_sub(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return scatter_into("tensor_scatter_nd_sub", x, indices, -updates, Reduction::add);
}
Tensor tensor_scatter_nd_min(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return scatter_into("tensor_scatter_nd_min", x, indices, updates, Reduction::min);
}
Tensor tensor_scatter_nd_max(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return scatter_into("tensor_scatter_nd_max", x, indices, updates, Reduction::max);
}
Tensor tensor_scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates, Reduction reduction) {
  return scatter_into("tensor_scatter_nd", x, indices, updates, reduction);
}

Tensor scatter_elements(const Tensor& x, const Tensor& indices, const Tensor& updates, int axis, Reduction reduction) {
  const int rank = x.shape().rank(), at = x.shape().normalized(axis);
  require(indices.shape().rank() == rank && updates.shape() == indices.shape() && updates.dtype() == x.dtype(),
          "scatter_elements: x is ", x.spec(), ", indices ", indices.spec(), ", updates ", updates.spec(),
          "; expected as many dimensions, updates of the dtype of x and of the shape of the indices");
  for (int i = 0; i < rank; ++i)
    require(i == at || x.shape()[i] < 0 || indices.shape()[i] < 0 || indices.shape()[i] <= x.shape()[i],
            "scatter_elements: dimension ", i, " of indices ", indices.spec(), " is longer than that of x ", x.spec());
  const std::int64_t size = x.shape().size(), places = indices.shape().size();
  const Tensor flat = reshape(element_positions("scatter_elements", x.shape(), indices, at), {places});
  return reshape(scatter(reshape(x, {size}), flat, reshape(updates, {places}), -1, reduction), x.shape());
}

Tensor put_along_axis(const Tensor& x, const Tensor& indices, const Tensor& values, int axis) {
  const int rank = x.shape().rank();
  require(rank > 0 && indices.shape().rank() == rank, "put_along_axis: x is ", x.spec(), ", indices ", indices.spec(),
          "; expected as many dimensions, at least one");
  Shape wanted = x.shape();
  wanted.set(axis, 1);
  wanted = broadcast_shape(wanted, indices.shape(), "put_along_axis: indices and the other dimensions of x");
  return scatter_elements(x, broadcast_to(indices, wanted), broadcast_to(values, wanted), axis, Reduction::none);
}

// ---------------------------------------------------------------- rows

Spec UpdateRows::infer(Specs in) const {
  require(in.size() == 3, name, ": expected 3 operands, got ", in.size());
  require(in[0].shape.rank() > 0, name, ": ", in[0], " has no rows");
  return Scatter{-in[0].shape.rank(), as_kind(Reduction::none)}.infer(in);
}

/// Replaced elements get none, of the rows at one place only the last one does, and those outside none.
Tensors UpdateRows::vjp(In in, const Tensor&, const Tensor& dy) const {
  const Tensor &x = in[0], &indices = in[1], &rows = in[2];
  const std::int64_t n = x.shape()[0];
  if (n == 0) return {dy, {}, zeros_of(rows)};
  const Tensor order = iota(indices.shape(), i64);
  const Tensor last = apply(UpdateRows{}, fill({n}, -1, i64), indices, order);
  const Tensor counts = equal(rows_at(last, minimum(indices, extent(n, indices.dtype()) - 1)), order);
  Shape shape = indices.shape();
  while (shape.rank() < rows.shape().rank()) shape.push_back(1);
  const Tensor read = rows_at(dy, minimum(indices, extent(n, indices.dtype()) - 1));
  return {update_rows(dy, indices, zeros_of(rows)), {}, where(reshape(counts, shape), read, zeros_of(rows))};
}

/// The rows of all x lie one after the other; a place outside stays outside.
Tensor UpdateRows::batch(In in, std::uint32_t mask, std::int64_t count) const {
  Tensors each;
  for (std::size_t i = 0; i < in.size(); ++i) each.push_back(has_rows(mask, i) ? in[i] : repeat_rows(in[i], count));
  const Tensor &x = each[0], within = cast(each[1], i64);
  const std::int64_t n = x.shape()[1];
  Shape spread{count};
  while (spread.rank() < within.shape().rank()) spread.push_back(1);
  const Tensor first = reshape(iota({count}, i64) * extent(n, i64), spread);
  const Tensor inside = logical_and(within >= 0, within < extent(n, i64));
  const Tensor places = where(inside, within + first, fill_like(within, -1));
  return reshape(update_rows(reshape(x, merged(x.shape(), x.shape().rank() - 2)), places, each[2]), x.shape());
}

Tensor update_rows(const Tensor& x, const Tensor& indices, const Tensor& rows) {
  return apply(UpdateRows{}, x, indices, rows);
}

Tensor rows_at(const Tensor& x, const Tensor& indices) {
  return apply(Gather{-x.shape().rank()}, x, maximum(indices, 0));
}

Tensor where_changed(const Tensor& condition, const Tensor& next, const Tensor& before) {
  const Ref<Node>& node = next.node();
  if (!node->op.as<UpdateRows>()) return where(condition, next, before);
  const Tensor base(node->inputs[0]), indices(node->inputs[1]), rows(node->inputs[2]);
  const Tensor chosen = base.node() == before.node() ? before : where_changed(condition, base, before);
  return update_rows(chosen, indices, where(condition, rows, rows_at(before, indices)));
}

}  // namespace gradus
