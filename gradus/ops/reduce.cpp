/// Reductions: the primitives, which reduce one axis to size 1, and the functions composed of them.
#include "gradus/ops/reduce.h"
#include <bit>
#include <limits>
#include "gradus/graph/extents.h"
#include "gradus/ops/index_types.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/cumulative_ops.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/extent_op.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// Integers have no infinity: their lowest number stands for it.
scalar::Literal lowest_number(DType t) {
  return with_type(t, []<class T>(T) -> scalar::Literal {
    if constexpr (FloatingElement<T>) return -std::numeric_limits<double>::infinity();
    else return std::numeric_limits<T>::min();
  });
}
scalar::Literal highest(DType t) {
  return with_type(t, []<class T>(T) -> scalar::Literal {
    if constexpr (FloatingElement<T>) return std::numeric_limits<double>::infinity();
    else return std::numeric_limits<T>::max();
  });
}

/// The cotangent of an extreme element, split evenly among those that are it. None is NaN: the gradient of a row that
/// holds one is NaN, as the value is.
Tensor split_among_ties(const Tensor& x, const Tensor& y, const Tensor& dy, int axis) {
  const Tensor chosen = equal(x, broadcast_to(y, x.shape()));
  const Tensor share = in_computed_dtype(dy, [&](const Tensor& wide) {  // narrow floats would not count so far
    return wide / reduce_sum(cast(chosen, wide.dtype()), {.axis = {axis}, .keepdims = true});
  });
  return where(chosen, broadcast_to(share, x.shape()), broadcast_to(nan_of_nan(y, dy), x.shape()));
}

/// Per element along `axis` the product of all others, as running products from both sides, without a division: right
/// where elements are 0, and so are its gradients.
Tensor product_of_others(const Tensor& x, int axis) {
  return cumprod(x, {.axis = axis, .exclusive = true}) * cumprod(x, {.axis = axis, .exclusive = true, .reverse = true});
}

}  // namespace

struct Sum {
  static constexpr auto name = "sum";
  int axis = -1;
  static scalar::Literal identity(DType) { return 0; }
  auto combine(auto sum, auto x) const { return sum + x; }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const { return {broadcast_to(dy, in[0].shape())}; }
};

/// NaN wins, wherever it stands.
struct Max {
  static constexpr auto name = "max";
  int axis = -1;
  static scalar::Literal identity(DType t) { return lowest_number(t); }
  auto combine(auto best, auto x) const {
    return is_floating(type_of(x)) ? select(x == x, max(x, best), x) : max(x, best);
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const { return {split_among_ties(in[0], y, dy, axis)}; }
};

struct Min {
  static constexpr auto name = "min";
  int axis = -1;
  static scalar::Literal identity(DType t) { return highest(t); }
  auto combine(auto best, auto x) const {
    return is_floating(type_of(x)) ? select(x == x, min(x, best), x) : min(x, best);
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const { return {split_among_ties(in[0], y, dy, axis)}; }
};

struct Prod {
  static constexpr auto name = "prod";
  int axis = -1;
  static scalar::Literal identity(DType) { return 1; }
  auto combine(auto product, auto x) const { return product * x; }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    return {broadcast_to(dy, in[0].shape()) * product_of_others(in[0], axis)};
  }
};

struct Any {
  static constexpr auto name = "any";
  static constexpr auto takes = Takes::booleans;
  int axis = -1;
  static scalar::Literal identity(DType) { return 0; }
  auto combine(auto any, auto x) const { return any | x; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

struct All {
  static constexpr auto name = "all";
  static constexpr auto takes = Takes::booleans;
  int axis = -1;
  static scalar::Literal identity(DType) { return 1; }
  auto combine(auto all, auto x) const { return all & x; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

/// A dimension as a number: known only at each call if it is symbolic.
struct ExtentNumber {
  static constexpr auto name = "extent";
  std::int64_t dimension = 0;
  DType dtype = f32;
  scalar::Value emit_index(scalar::Value i) const { return convert(scalar::extent(i.code(), dimension), dtype); }
  scalar::Real emit_index(scalar::Real) const {
    return convert(scalar::Real(static_cast<double>(dimension), i64), dtype);
  }
  Spec infer(Specs in) const {
    require(in.empty() && dtype != boolean && (dimension >= 0 || dimension::symbols_in(dimension) > 0), name,
            ": expected a known dimension as a number");
    return {dtype, {}};
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

namespace {

const bool extent_has_extents = Extents::are<ExtentNumber>(&ExtentNumber::dimension);

/// Axes as a mask: bit i for axis i.
std::uint32_t mask_of(std::string_view op, const Tensor& x, const std::vector<int>& axis) {
  std::uint32_t mask = 0;
  for (int a : axis) {
    const std::uint32_t bit = 1u << x.shape().normalized(a);
    require(!(mask & bit), op, ": axis ", a, " of ", x.spec(), " is named twice");
    mask |= bit;
  }
  return axis.empty() ? (1u << x.shape().rank()) - 1 : mask;
}

Shape kept_shape(const Shape& shape, std::uint32_t mask, bool keepdims) {
  Shape out;
  for (int i = 0; i < shape.rank(); ++i)
    if (!(mask >> i & 1)) out.push_back(shape[i]);
    else if (keepdims) out.push_back(1);
  return out;
}

/// Reduces neighbouring axes [first, last] in one pass; they become 1.
template <class Op> Tensor reduce_run(const Tensor& x, int first, int last) {
  const int rank = x.shape().rank();
  int single = -1, longer_than_one = 0;
  for (int i = first; i <= last; ++i)
    if (x.shape()[i] != 1) {
      single = i;
      ++longer_than_one;
    }
  if (longer_than_one == 0) return x;
  if (longer_than_one == 1) return apply(Op{.axis = single - rank}, x);
  Shape merged, kept = x.shape();
  std::int64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    if (i < first || i > last) merged.push_back(x.shape()[i]);
    else {
      elements = dimension::multiply(elements, x.shape()[i]);
      kept.set(i, 1);
      if (i == last) merged.push_back(elements);
    }
  }
  return reshape(apply(Op{.axis = last - rank}, reshape(x, merged)), kept);
}

/// The axes in `mask` become 1, the last first: so fewer elements are left for the slower ones. Where they lie apart,
/// what narrow floats come to on the way is not rounded.
template <class Op> Tensor reduce_mask(Tensor x, std::uint32_t mask) {
  const bool is_one_run = std::has_single_bit((mask | (mask - 1)) + 1);
  if (mask && !is_one_run && is_narrow(x.dtype()))
    return in_f32(x, [&](const Tensor& wide) { return reduce_mask<Op>(wide, mask); });
  for (int last = x.shape().rank() - 1; last >= 0; --last) {
    if (!(mask >> last & 1)) continue;
    int first = last;
    while (first > 0 && (mask >> (first - 1) & 1)) --first;
    x = reduce_run<Op>(x, first, last);
    last = first;
  }
  return x;
}

template <class Op> Tensor reduce(std::string_view op, const Tensor& x, const ReduceOptions& options) {
  const std::uint32_t mask = mask_of(op, x, options.axis);
  const bool is_scalar = x.shape().rank() == 0;  // which has no axis to reduce, but a dtype
  (void)AnyOp::of(Op{}).infer(std::array{is_scalar ? Spec{x.dtype(), {1}} : x.spec()});
  return reshape(reduce_mask<Op>(x, mask), kept_shape(x.shape(), mask, options.keepdims));
}

void require_floats(std::string_view op, const Tensor& x) {
  require(is_floating(x.dtype()), op, ": expected a floating type, got ", x.spec(), "; cast(x, f32) first");
}

/// sqrt(x) whose gradients of every order are 0 where x is 0.
Tensor flat_sqrt(const Tensor& x) {
  const Tensor zero = fill_like(x, 0), at_zero = equal(x, zero);
  return where(at_zero, zero, sqrt(where(at_zero, fill_like(x, 1), x)));
}

Tensor without(const ReduceOptions& options, const Tensor& x, const Tensor& kept) {
  return reshape(kept, kept_shape(x.shape(), mask_of("reduce", x, options.axis), options.keepdims));
}

ReduceOptions keeping(ReduceOptions options) {
  options.keepdims = true;
  return options;
}

/// The index along `axis`, broadcast to the shape of x: [.., n, ..].
Tensor index_along(const Tensor& x, int axis, DType index_type) {
  Shape along;
  for (int i = 0; i < x.shape().rank(); ++i) along.push_back(i == axis ? x.shape()[i] : 1);
  return broadcast_to(reshape(iota({x.shape()[axis]}, index_type), along), x.shape());
}

/// The first index along `axis` where x equals its extreme, which `Op` finds; NaN counts as Op's identity.
template <class Op> Tensor index_of_extreme(std::string_view op, const Tensor& given, int axis, DType index_type) {
  require(given.shape().rank() > 0, op, ": ", given.spec(), " has no axis");
  const int at = given.shape().normalized(axis);
  require(given.shape()[at] != 0, op, ": axis ", at, " of ", given.spec(), " has no element");
  require_held(op, index_type, dimension::subtract(given.shape()[at], 1));
  Tensor x = given.dtype() == boolean ? cast(given, u8) : given;
  if (is_floating(x.dtype())) x = where(equal(x, x), x, fill_like(x, Op::identity(x.dtype())));
  const Tensor best = reduce_mask<Op>(x, 1u << at);
  const Tensor along = index_along(x, at, index_type);
  const Tensor index = where(equal(x, broadcast_to(best, x.shape())), along, fill_like(along, highest(index_type)));
  return reduce<Min>(op, index, {.axis = {at}});
}

}  // namespace

Tensor reduce_sum(const Tensor& x, ReduceOptions options) { return reduce<Sum>("reduce_sum", x, options); }
Tensor reduce_max(const Tensor& x, ReduceOptions options) { return reduce<Max>("reduce_max", x, options); }
Tensor reduce_min(const Tensor& x, ReduceOptions options) { return reduce<Min>("reduce_min", x, options); }
Tensor reduce_prod(const Tensor& x, ReduceOptions options) {
  return in_computed_dtype(x, [&](const Tensor& wide) { return reduce<Prod>("reduce_prod", wide, options); });
}
Tensor reduce_any(const Tensor& x, ReduceOptions options) { return reduce<Any>("reduce_any", x, options); }
Tensor reduce_all(const Tensor& x, ReduceOptions options) { return reduce<All>("reduce_all", x, options); }

Tensor reduce_mean(const Tensor& x, ReduceOptions options) {
  require_floats("reduce_mean", x);
  if (is_narrow(x.dtype())) return in_f32(x, [&](const Tensor& wide) { return reduce_mean(wide, options); });
  const std::uint32_t mask = mask_of("reduce_mean", x, options.axis);
  std::int64_t elements = 1;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (mask >> i & 1) elements = dimension::multiply(elements, x.shape()[i]);
  return reduce_sum(x, options) / extent(elements, x.dtype());
}

Tensor reduce_logsumexp(const Tensor& x, ReduceOptions options) {
  require_floats("reduce_logsumexp", x);
  if (is_narrow(x.dtype())) return in_f32(x, [&](const Tensor& wide) { return reduce_logsumexp(wide, options); });
  const Tensor largest = stop_gradient(reduce_max(x, keeping(options)));
  const Tensor zero = fill_like(largest, 0);
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor shift = where(equal(largest, fill_like(largest, -infinity)), zero, largest);
  const Tensor sum = reduce_sum(exp(minus_largest(x, shift)), keeping(options));
  // The sum over -inf alone is 0, and 1 / 0 * 0 would be the gradient.
  const Tensor none = equal(sum, zero);
  const Tensor logarithm = where(none, fill_like(sum, -infinity), log(where(none, fill_like(sum, 1), sum)));
  return without(options, x, logarithm + shift);
}

Tensor reduce_variance(const Tensor& x, ReduceOptions options) {
  require_floats("reduce_variance", x);
  if (is_narrow(x.dtype())) return in_f32(x, [&](const Tensor& wide) { return reduce_variance(wide, options); });
  // E (x - a)^2 - (E x - a)^2 is the variance for every a. That a is the mean makes the second term 0, but leaves
  // gradients of any order right; the first one then needs no sum of x - a, which is 0, too.
  const Tensor mean = reduce_mean(x, keeping(options)), a = stop_gradient(mean);
  return reduce_mean(square(x - a), options) - without(options, x, square(mean - a));
}

Tensor reduce_std(const Tensor& x, ReduceOptions options) {
  require_floats("reduce_std", x);
  if (is_narrow(x.dtype())) return in_f32(x, [&](const Tensor& wide) { return reduce_std(wide, options); });
  return flat_sqrt(reduce_variance(x, options));
}

Tensor norm(const Tensor& x, ReduceOptions options) {
  require_floats("norm", x);
  if (is_narrow(x.dtype())) return in_f32(x, [&](const Tensor& wide) { return norm(wide, options); });
  return flat_sqrt(reduce_sum(square(x), options));
}

Tensor argmax(const Tensor& x, int axis) { return argmax_as(x, axis, i32); }
Tensor argmin(const Tensor& x, int axis) { return argmin_as(x, axis, i32); }
Tensor argmax_as(const Tensor& x, int axis, DType t) { return index_of_extreme<Max>("argmax", x, axis, t); }
Tensor argmin_as(const Tensor& x, int axis, DType t) { return index_of_extreme<Min>("argmin", x, axis, t); }

Tensor cumsum(const Tensor& x, int axis) {
  require(x.shape().rank() > 0, "cumsum: ", x.spec(), " has no axis");
  return apply(Cumsum{.axis = x.shape().normalized(axis) - x.shape().rank()}, x);
}

Spec Cumsum::infer(Specs in) const {
  require(in.size() == 1, name, ": expected 1 operand, got ", in.size());
  require(in[0].dtype != boolean, name, ": expected numbers, got ", in[0], "; cast it first");
  require<OutOfRange>(axis < 0 && axis >= -in[0].shape.rank(), name, ": axis ", axis, " is out of range for ", in[0]);
  return in[0];
}

Tensors Cumsum::vjp(In, const Tensor&, const Tensor& dy) const {
  return {apply(Cumsum{.axis = axis, .exclusive = exclusive, .reverse = !reverse}, dy)};
}

Tensor Cumsum::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }

int Cumsum::carries(Specs, int, int along) const { return along == axis ? 0 : along; }

Tensor detail::sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int rank = x.shape().rank();
  std::uint32_t mask = 0;
  for (int i = 1; i <= rank; ++i)
    if (i > shape.rank() || shape[-i] != x.shape()[-i]) mask |= 1u << (rank - i);
  return reshape(reduce_mask<Sum>(x, mask), shape);
}

AnyOp extent_op(std::int64_t dimension, DType dtype) { return AnyOp::of(ExtentNumber{dimension, dtype}); }

Tensor detail::extent(std::int64_t dimension, DType dtype) {
  return dimension >= 0 ? fill({}, dimension, dtype) : apply(ExtentNumber{dimension, dtype});
}

Tensor detail::element_count(const Tensor& x, DType dtype) { return extent(x.shape().size(), dtype); }

}  // namespace gradus
