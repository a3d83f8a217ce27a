/// Indexing by data by means of gather: all indices become flat positions in one merged dimension.
#include "gradus/ops/indexing.h"
#include <limits>
#include "gradus/graph/mask.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// Dimensions [first, last) of `shape`.
Shape part(const Shape& shape, int first, int last) {
  Shape out;
  for (int i = first; i < last; ++i) out.push_back(shape[i]);
  return out;
}

Shape joined(Shape a, const Shape& b) {
  for (std::int64_t d : b) a.push_back(d);
  return a;
}

void require_batch(std::string_view op, const Tensor& x, const Tensor& indices, int batch_dims, int limit) {
  require(batch_dims >= 0 && batch_dims <= limit, op, ": batch_dims ", batch_dims, " for x ", x.spec(), " and indices ",
          indices.spec(), ": expected 0 to ", limit);
  for (int i = 0; i < batch_dims; ++i)
    require(x.shape()[i] == indices.shape()[i], op, ": dimension ", i, " of x ", x.spec(), " and of indices ",
            indices.spec(), " is one of ", batch_dims, " batch_dims; they must agree");
}

}  // namespace

Tensor detail::as_indices(std::string_view op, const Tensor& indices) {
  require(is_integer(indices.dtype()), op, ": indices are ", indices.spec(), ", expected an integer type");
  const DType t = indices.dtype();
  return cast(indices, t == i64 || t == u32 || t == u64 ? i64 : i32);
}

Tensor gather(const Tensor& x, const Tensor& indices, int axis) {
  require(x.shape().rank() > 0, "gather: ", x.spec(), " has no axis");
  const int at = x.shape().normalized(axis);
  const Tensor chosen = apply(Gather{at - x.shape().rank()}, x, as_indices("gather", indices));
  const bool chooses_places = SequenceMask::is_used() && at < 2 && indices.shape().rank() == 1;
  if (chooses_places && SequenceMask::of(x).defined()) SequenceMask::lose(chosen);
  return chosen;
}

Tensor detail::wrapped_indices(const Tensor& indices, std::int64_t n, std::string_view op) {
  const bool is_long = n > std::numeric_limits<std::int32_t>::max();
  Tensor at = as_indices(op, indices);
  if (is_long) at = cast(at, i64);
  if (!is_signed(indices.dtype())) return at;
  const Tensor size = extent(n, at.dtype());
  return where(logical_and(at < 0, at >= -size), at + size, at);
}

Tensor detail::iota_along(int rank, int axis, std::int64_t n, DType dtype) {
  Shape along;
  for (int i = 0; i < rank; ++i) along.push_back(i == axis ? n : 1);
  return reshape(iota({n}, dtype), along);
}

Tensor detail::flat_positions(std::string_view op, const Tensor& indices, const Shape& dimensions) {
  const Tensor at = as_indices(op, indices);
  Shape places = at.shape();
  places.erase(-1);
  Tensor flat;
  for (int i = 0; i < dimensions.rank(); ++i) {
    const Tensor one = cast(check_range(reshape(slice_within(at, -1, i, 1), places), dimensions[i], false), i64);
    flat = flat.defined() ? flat * extent(dimensions[i], i64) + one : one;
  }
  return flat;
}

Tensor gather(const Tensor& x, const Tensor& indices, int axis, int batch_dims) {
  require(x.shape().rank() > 0, "gather: ", x.spec(), " has no axis");
  const int at = x.shape().normalized(axis), rank = x.shape().rank();
  if (batch_dims < 0) batch_dims += indices.shape().rank();
  require_batch("gather", x, indices, batch_dims, std::min(at, indices.shape().rank()));
  if (batch_dims == 0) return gather(x, indices, axis);
  const Shape batch = part(x.shape(), 0, batch_dims),
              places = part(indices.shape(), batch_dims, indices.shape().rank());
  const Shape outer = part(x.shape(), batch_dims, at), inner = part(x.shape(), at + 1, rank);
  // One dimension of batches, and one of outer dimensions: the rows of a batching rule.
  const Tensor rows[] = {reshape(x, joined({batch.size(), outer.size(), x.shape()[at]}, inner)),
                         reshape(as_indices("gather", indices), {batch.size(), places.size()})};
  const Tensor y = Gather{at - rank}.batch(rows, 3, batch.size());
  return reshape(y, joined(joined(joined(batch, outer), places), inner));
}

Tensor gather_nd(const Tensor& x, const Tensor& indices) { return gather_nd(x, indices, 0); }

Tensor gather_nd(const Tensor& x, const Tensor& indices, int batch_dims) {
  const int rank = x.shape().rank(), index_rank = indices.shape().rank();
  require(index_rank > 0, "gather_nd: indices are ", indices.spec(), ", expected [places..., k]");
  const std::int64_t depth = indices.shape().back();
  require_batch("gather_nd", x, indices, batch_dims, std::min(rank, index_rank - 1));
  require(depth >= 1 && depth <= rank - batch_dims, "gather_nd: positions of ", dimension::to_text(depth),
          " numbers for x ", x.spec(), batch_dims ? text(" after ", batch_dims, " batch_dims") : "");
  const int end = batch_dims + static_cast<int>(depth);
  const Shape batch = part(x.shape(), 0, batch_dims), merged = part(x.shape(), batch_dims, end);
  const std::int64_t size = merged.size();
  Tensor flat = flat_positions("gather_nd", indices, merged);
  if (batch_dims > 0) {
    Shape along = batch;
    while (along.rank() < flat.shape().rank()) along.push_back(1);
    flat = flat + reshape(iota({batch.size()}, i64) * extent(size, i64), along);
  }
  const Shape all = joined({dimension::multiply(batch.size(), size)}, part(x.shape(), end, rank));
  return gather(reshape(x, all), flat, 0);
}

Tensor detail::element_positions(std::string_view op, const Shape& x, const Tensor& indices, int axis) {
  const int rank = x.rank();
  const Shape strides = dense_strides(x), &shape = indices.shape();
  Tensor flat = cast(check_range(as_indices(op, indices), x[axis], false), i64) * extent(strides[axis], i64);
  for (int i = 0; i < rank; ++i) {
    if (i == axis || shape[i] == 1) continue;
    flat = flat + iota_along(rank, i, shape[i], i64) * extent(strides[i], i64);
  }
  return flat;
}

namespace {

int required_axis(std::string_view op, const Tensor& x, const Tensor& indices, int axis) {
  require(x.shape().rank() > 0 && x.shape().rank() == indices.shape().rank(), op, ": x is ", x.spec(), ", indices ",
          indices.spec(), "; expected as many dimensions, at least one");
  return x.shape().normalized(axis);
}

Tensor read_elements(std::string_view op, const Tensor& x, const Tensor& indices, int axis) {
  return gather(reshape(x, {x.shape().size()}), element_positions(op, x.shape(), indices, axis), 0);
}

}  // namespace

Tensor detail::gather_elements(const Tensor& x, const Tensor& indices, int axis) {
  const int at = required_axis("gather_elements", x, indices, axis);
  for (int i = 0; i < x.shape().rank(); ++i)
    require(i == at || x.shape()[i] < 0 || indices.shape()[i] < 0 || indices.shape()[i] <= x.shape()[i],
            "gather_elements: dimension ", i, " of indices ", indices.spec(), " is longer than that of x ", x.spec());
  return read_elements("gather_elements", x, indices, at);
}

Tensor take_along_axis(const Tensor& x, const Tensor& indices, int axis) {
  const int at = required_axis("take_along_axis", x, indices, axis);
  Shape of_x = x.shape(), of_indices = indices.shape();
  of_x.set(at, 1);
  of_indices.set(at, 1);
  of_x = of_indices = broadcast_shape(of_x, of_indices, "take_along_axis: the other dimensions of x and of indices");
  of_x.set(at, x.shape()[at]);
  of_indices.set(at, indices.shape()[at]);
  return read_elements("take_along_axis", broadcast_to(x, of_x), broadcast_to(indices, of_indices), at);
}

}  // namespace gradus
