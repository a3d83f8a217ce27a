/// Running products are a linear recurrence, whose gradient is a linear recurrence in the other direction. So there is
/// no division, and zeros are no special case in any order.
#include "gradus/ops/cumulative.h"
#include <limits>
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/cumulative_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

/// True where an element is the first along `axis` (`reverse`: the last): bool of the shape of x.
Tensor is_first(const Tensor& x, int axis, bool reverse) {
  Shape along;
  for (int i = 0; i < x.shape().rank(); ++i) along.push_back(i == axis ? x.shape()[i] : 1);
  const Tensor index = reshape(iota({x.shape()[axis]}, i64), along);
  const Tensor first = reverse ? extent(x.shape()[axis], i64) - 1 : fill({}, 0, i64);
  return broadcast_to(equal(index, broadcast_to(first, along)), x.shape());
}

Tensor recurrence(const Tensor& a, const Tensor& b, int axis, bool reverse) {
  return apply(LinearRecurrence{.axis = axis - a.shape().rank(), .reverse = reverse}, a, b);
}

/// The same steps as a loop, for a size that is not known when tracing: what has no neighbour stays as it is.
Tensor running_in_a_loop(const Tensor& x, int axis, bool reverse, auto combine) {
  const std::int64_t n = x.shape()[axis];
  Shape along;
  for (int i = 0; i < x.shape().rank(); ++i) along.push_back(i == axis ? n : 1);
  const auto body = [&](In in) {  // the distance; what was combined so far
    const Tensor last = extent(n, i64) - 1, place = iota({n}, i64);
    const Tensor neighbour = reverse ? place + in[0] : place - in[0];
    const Tensor is_there = reverse ? neighbour <= last : neighbour >= fill({}, 0, i64);
    const Tensor other = gather(in[1], minimum(maximum(neighbour, fill({}, 0, i64)), last), axis);
    const Tensor combined = combine(other, in[1]);
    return Tensors{in[0] * 2, where(broadcast_to(reshape(is_there, along), x.shape()), combined, in[1])};
  };
  return detail::scan(body, Tensors{fill({}, 1, i64), x}, iota({dimension::doublings(n)}, i64)).at(1);
}

/// Combines every element with all before it, in the log2(n) steps of Hillis and Steele: step s combines neighbours at
/// distance s. `combine` is associative and commutative.
Tensor running(const Tensor& x, int axis, bool reverse, auto combine) {
  const std::int64_t n = x.shape()[axis];
  if (SizeChoice::choose(n < 0) || n < 0) return running_in_a_loop(x, axis, reverse, combine);
  Tensor y = x;
  for (std::int64_t distance = 1; distance < n; distance *= 2) {
    const std::int64_t rest = n - distance;
    const Tensor low = slice_within(y, axis, 0, rest), high = slice_within(y, axis, distance, rest);
    const Tensor kept = slice_within(y, axis, reverse ? rest : 0, distance);
    const Tensor combined = reverse ? combine(high, low) : combine(low, high);
    y = reverse ? concat({combined, kept}, axis) : concat({kept, combined}, axis);
  }
  return y;
}

Tensor running_extreme(std::string_view op, const Tensor& x, int axis, Tensor (*better)(const Tensor&, const Tensor&)) {
  require(x.dtype() != boolean, op, ": expected numbers, got ", x.spec(), "; cast it first");
  const int at = checked_axis(x, axis, op);
  return in_computed_dtype(x, [&](const Tensor& wide) { return running(wide, at, false, better); });
}

}  // namespace

Spec LinearRecurrence::infer(Specs in) const {
  require(in.size() == 2, name, ": expected 2 operands, got ", in.size());
  require(in[0] == in[1], name, ": a is ", in[0], ", b is ", in[1], "; they must agree");
  require(in[0].dtype != boolean, name, ": expected numbers, got ", in[0], "; cast it first");
  require<OutOfRange>(axis < 0 && axis >= -in[0].shape.rank(), name, ": axis ", axis, " is out of range for ", in[0]);
  return in[0];
}

/// With g the cotangent of y[t] once what follows has used it: g[t] = dy[t] + a[t+1] g[t+1].
Tensors LinearRecurrence::vjp(In in, const Tensor& y, const Tensor& dy) const {
  if (!is_floating(y.dtype())) return Tensors(2);
  const int at = y.shape().rank() + axis;
  const Tensor g = recurrence(moved_by_one(in[0], at, 0, !reverse), dy, at, !reverse);
  return {g * moved_by_one(y, at, 0, reverse), g};
}

Tensor LinearRecurrence::batch(In in, std::uint32_t mask, std::int64_t n) const {
  Tensors rows(in.begin(), in.end());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!has_rows(mask, i)) rows[i] = repeat_rows(rows[i], n);
  return gradus::detail::apply(*this, In(rows));
}

int LinearRecurrence::carries(Specs, int, int along) const { return along == axis ? 0 : along; }

Tensor moved_by_one(const Tensor& x, int axis, scalar::Literal first, bool reverse) {
  if (x.shape()[axis] == 0) return x;
  Shape one = x.shape();
  one.set(axis, 1);
  const Tensor added = fill(one, first, x.dtype());
  const Tensor longer = reverse ? concat({x, added}, axis) : concat({added, x}, axis);
  return slice_within(longer, axis, reverse ? 1 : 0, x.shape()[axis]);
}

Tensor cumsum(const Tensor& x, CumulativeOptions options) {
  const int at = checked_axis(x, options.axis, "cumsum");
  return apply(Cumsum{at - x.shape().rank(), options.exclusive, options.reverse}, x);
}

Tensor cumprod(const Tensor& x, int axis) { return cumprod(x, CumulativeOptions{.axis = axis}); }
Tensor cumprod(const Tensor& x, CumulativeOptions options) {
  require(x.dtype() != boolean, "cumprod: expected numbers, got ", x.spec(), "; cast it first");
  const int at = checked_axis(x, options.axis, "cumprod");
  // Adding -0 changes nothing, -0 included.
  const scalar::Literal nothing = is_floating(x.dtype()) ? scalar::Literal(-0.0) : scalar::Literal(0);
  return in_computed_dtype(x, [&](const Tensor& wide) {
    const Tensor factors = options.exclusive ? moved_by_one(wide, at, 1, options.reverse) : wide;
    const Tensor start = where(is_first(wide, at, options.reverse), factors, fill_like(wide, nothing));
    return recurrence(factors, start, at, options.reverse);
  });
}

Tensor cumulative_logsumexp(const Tensor& x, int axis) {
  return cumulative_logsumexp(x, CumulativeOptions{.axis = axis});
}
Tensor cumulative_logsumexp(const Tensor& x, CumulativeOptions options) {
  require_floating(x, "cumulative_logsumexp");
  const int at = checked_axis(x, options.axis, "cumulative_logsumexp");
  return in_computed_dtype(x, [&](const Tensor& wide) {
    const Tensor terms =
        options.exclusive ? moved_by_one(wide, at, -std::numeric_limits<double>::infinity(), options.reverse) : wide;
    return running(terms, at, options.reverse, [](const Tensor& a, const Tensor& b) { return logaddexp(a, b); });
  });
}

Tensor cummax(const Tensor& x, int axis) { return running_extreme("cummax", x, axis, maximum); }
Tensor cummin(const Tensor& x, int axis) { return running_extreme("cummin", x, axis, minimum); }

}  // namespace gradus
