/// Sorting: the primitive gives the indices, a gather the elements.
#include "gradus/ops/size_bounds.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/sort_ops.h"
#include <bit>
#include <limits>
#include "gradus/graph/extents.h"
#include "gradus/ops/index_types.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"

namespace gradus {

namespace {

const bool sorts_have_extents = Extents::are<ArgSort>(&ArgSort::count);

}  // namespace

Spec ArgSort::infer(Specs in) const {
  require(in.size() == 1, name, ": expected 1 operand, got ", in.size());
  require(in[0].shape.rank() > 0, name, ": ", in[0], " has no axis");
  const std::int64_t n = in[0].shape.back();
  require(n <= std::numeric_limits<std::int32_t>::max(), name, ": i32 does not number ", n, " elements");
  require(count >= 0 || dimension::symbols_in(count) > 0, name, ": ", count, " is no number of elements");
  require(n < 0 || count < 0 || count <= n, name, ": expected at least ", count, " elements in a row, got ", in[0]);
  Spec out{i32, in[0].shape};
  out.shape.set(-1, count);
  return out;
}

Tensors ArgSort::vjp(In, const Tensor&, const Tensor&) const { return {}; }

Tensor ArgSort::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }

int ArgSort::carries(Specs, int, int along) const { return along == -1 ? 0 : along; }

namespace {

/// Exchanges `axis` with the last dimension.
Tensor with_last(const Tensor& x, int axis) {
  std::vector<int> order;
  for (int i = 0; i < x.shape().rank(); ++i) order.push_back(i);
  std::swap(order[static_cast<std::size_t>(axis)], order.back());
  return transpose(x, order);
}

/// x: [rows..., n], positions: i32 [rows..., count] -> x at the positions of its row.
Tensor read_rows(const Tensor& x, const Tensor& positions) {
  if (x.shape().rank() == 1) return apply(Gather{-1}, x, positions);
  Shape rows = x.shape();
  const std::int64_t n = rows.back(), size = rows.size();
  rows.set(-1, 1);
  const Tensor starts = reshape(iota({rows.size()}, i64) * extent(n, i64), rows);
  return apply(Gather{-1}, reshape(x, {size}), cast(positions, i64) + starts);
}

int required_axis(std::string_view op, const Tensor& x, int axis) {
  require(x.shape().rank() > 0, op, ": ", x.spec(), " has no axis");
  return x.shape().normalized(axis);
}

/// True where an element of an ascending row stands before the place of a value. NaN comes after every number.
Tensor stands_before(const Tensor& element, const Tensor& value, Side side) {
  const Tensor before = side == Side::left ? element < value : element <= value;
  if (!is_floating(value.dtype())) return before;
  const Tensor behind_all =
      side == Side::left ? logical_and(is_nan(value), logical_not(is_nan(element))) : is_nan(value);
  return logical_or(before, behind_all);
}

/// The first `k` elements along the axis in order; without k: all.
TopK ordered(std::string_view op, const Tensor& x, int axis, std::optional<std::int64_t> k, bool descending) {
  const int at = required_axis(op, x, axis);
  const Tensor rows = with_last(x, at);
  const Tensor positions = apply(ArgSort{descending, k.value_or(rows.shape().back())}, rows);
  return {with_last(read_rows(rows, positions), at), with_last(positions, at)};
}

}  // namespace

Tensor sort(const Tensor& x, int axis, Direction direction) {
  return ordered("sort", x, axis, {}, direction == Direction::descending).values;
}

Tensor argsort(const Tensor& x, int axis, Direction direction) {
  const int at = required_axis("argsort", x, axis);
  const Tensor rows = with_last(x, at);
  return with_last(apply(ArgSort{direction == Direction::descending, rows.shape().back()}, rows), at);
}

TopK top_k(const Tensor& x, std::int64_t k) { return top_k(x, k, {}); }

TopK top_k(const Tensor& x, std::int64_t k, const TopKOptions& options) {
  const int at = required_axis("top_k", x, options.axis);
  const std::int64_t n = x.shape()[at];
  require(k >= 0 && (n < 0 || k <= n), "top_k: k is ", k, ", but dimension ", at, " of ", x.spec(), " has ",
          dimension::to_text(n), " elements");
  require_not_negative(dimension::subtract(n, k),
                       [&] { return text("top_k: k is ", k, ", more than dimension ", at, " of ", x.spec()); });
  return ordered("top_k", x, at, k, options.largest);
}

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, Side side, DType out_type) {
  const Shape &rows = sorted_sequence.shape(), &asked = values.shape();
  bool fits = rows.rank() > 0 && rows.rank() == asked.rank();
  for (int i = 0; fits && i + 1 < rows.rank(); ++i) fits = rows[i] == asked[i];
  require(fits, "searchsorted: sorted_sequence is ", sorted_sequence.spec(), ", values are ", values.spec(),
          "; all dimensions but the last must agree");
  index_type("searchsorted", out_type, rows.back());
  const std::int64_t n = rows.back();
  if (n == 0) return zeros(asked, out_type);
  // As many halvings as the row needs; of a size that is open, as many as any row that fits into memory.
  const bool is_known = SizeChoice::choose(n > 0) && n > 0;
  constexpr int most_steps = 40;
  const int steps = is_known ? std::bit_width(static_cast<std::uint64_t>(n)) : most_steps;
  const DType counted = is_known && n <= std::numeric_limits<std::int32_t>::max() / 2 ? i32 : i64;
  const Tensor size = extent(n, counted);
  Tensor before = zeros(asked, counted);
  for (int step = steps - 1; step >= 0; --step) {
    const Tensor next = before + (std::int64_t{1} << step);
    const Tensor read = read_rows(sorted_sequence, minimum(next, size) - 1);
    before = where(logical_and(next <= size, stands_before(read, values, side)), next, before);
  }
  return cast(before, out_type);
}

}  // namespace gradus
