/// ONNX's reductions, and other ops along an axis.
#include "gradus/base/rooms.h"
#include "gradus/onnx/row.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"

namespace gradus::onnx {
namespace {

/// Axes are an attribute, since 18 (ReduceSum: 13) an input. None: all of them, unless noop_with_empty_axes.
template <class F> RowFunction reduction(const F& reduce) {
  return rounded_once([reduce](const Call& c) -> Tensor {
    const Tensor& x = c[0];
    const auto axes = c.integers_of(1, "axes");
    const bool is_empty = !axes || axes->empty();
    if (is_empty && c.flag("noop_with_empty_axes")) return reduce(x, ReduceOptions{.axis = {}, .keepdims = true}, true);
    if (x.shape().rank() == 0) return reduce(x, ReduceOptions{}, false);
    return reduce(
        x, ReduceOptions{is_empty ? std::vector<int>() : c.axes(*axes, x.shape().rank()), c.flag("keepdims", true)},
        false);
  });
}

/// A function of elements, then a reduction, then a function of its result; the reduction is left out where ONNX says
/// that there are no axes.
template <class Before, class Reduce, class After>
auto reduction_of(const Before& before, const Reduce& reduce, const After& after) {
  return reduction([=](const Tensor& x, const ReduceOptions& options, bool none) {
    const Tensor inner = before(x);
    return after(none ? inner : reduce(inner, options));
  });
}

const auto same = [](const Tensor& x) { return x; };

/// For integers the result is that in f64, cut off: reductions with fractions on the way are defined on floats.
template <class F> auto on_floats(const F& reduce) {
  return reduction([reduce](const Tensor& x, const ReduceOptions& options, bool none) {
    if (is_floating(x.dtype())) return reduce(x, options, none);
    return cast(reduce(cast(x, f64), options, none), x.dtype());
  });
}

Tensor max_of(const Tensor& x, const ReduceOptions& options) {
  return x.dtype() == boolean ? reduce_any(x, options) : reduce_max(x, options);
}
Tensor min_of(const Tensor& x, const ReduceOptions& options) {
  return x.dtype() == boolean ? reduce_all(x, options) : reduce_min(x, options);
}

/// Before 13 everything from the axis on is one row; since then the axis alone is.
template <class F> RowFunction along_axis(const F& f) {
  return rounded_once([f](const Call& c) -> Tensor {
    const Tensor& x = c[0];
    if (c.version() >= 13) return f(x, c.axis(c.integer("axis", -1), x.shape().rank()));
    const auto given = c.integer("axis", 1);
    const int axis = given == x.shape().rank() ? x.shape().rank() : c.axis(given, x.shape().rank());
    std::int64_t rows = 1, columns = 1;
    for (int d = 0; d < x.shape().rank(); ++d)
      (d < axis ? rows : columns) = dimension::multiply(d < axis ? rows : columns, x.shape()[d]);
    return reshape(f(reshape(x, {rows, columns}), 1), x.shape());
  });
}

template <class F> auto arg_reduction(const F& f) {
  return [f](const Call& c) -> Tensor {
    const int axis = c.axis(c.integer("axis", 0), c[0].shape().rank());
    Tensor index;
    if (c.flag("select_last_index")) {
      const Tensor last = f(reverse(c[0], {axis}), axis);
      index = extent(c[0].shape()[axis], i64) - 1 - cast(last, i64);
    } else {
      index = cast(f(c[0], axis), i64);
    }
    return c.flag("keepdims", true) ? expand_dims(index, axis) : index;
  };
}

Tensor cumulative_sum(const Call& c) {
  const int axis = c.axis(c.integer_of(1), c[0].shape().rank());
  return cumsum(c[0], {.axis = axis, .exclusive = c.flag("exclusive"), .reverse = c.flag("reverse")});
}

const Table reductions_table{
    {"ArgMax", {1, 11, 12, 13}, arg_reduction([](const Tensor& x, int axis) { return argmax(x, axis); })},
    {"ArgMin", {1, 11, 12, 13}, arg_reduction([](const Tensor& x, int axis) { return argmin(x, axis); })},
    {"CumSum", {11, 14}, rounded_once(cumulative_sum)},
    {"LogSoftmax", {1, 11, 13}, along_axis([](const Tensor& x, int axis) { return log_softmax(x, axis); })},
    {"ReduceL1", {1, 11, 13, 18}, reduction_of([](const Tensor& x) { return abs(x); }, reduce_sum, same)},
    {"ReduceL2", {1, 11, 13, 18}, on_floats([](const Tensor& x, const ReduceOptions& options, bool none) {
       return none ? abs(x) : norm(x, options);
     })},
    {"ReduceLogSum", {1, 11, 13, 18}, on_floats([](const Tensor& x, const ReduceOptions& options, bool none) {
       return log(none ? x : reduce_sum(x, options));
     })},
    {"ReduceLogSumExp", {1, 11, 13, 18}, on_floats([](const Tensor& x, const ReduceOptions& options, bool none) {
       return none ? x : reduce_logsumexp(x, options);
     })},
    {"ReduceMax", {1, 11, 12, 13, 18, 20}, reduction_of(same, max_of, same)},
    {"ReduceMean", {1, 11, 13, 18}, on_floats([](const Tensor& x, const ReduceOptions& options, bool none) {
       return none ? x : reduce_mean(x, options);
     })},
    {"ReduceMin", {1, 11, 12, 13, 18, 20}, reduction_of(same, min_of, same)},
    {"ReduceProd", {1, 11, 13, 18}, reduction_of(same, reduce_prod, same)},
    {"ReduceSum", {1, 11, 13}, reduction_of(same, reduce_sum, same)},
    {"ReduceSumSquare", {1, 11, 13, 18}, reduction_of([](const Tensor& x) { return square(x); }, reduce_sum, same)},
    {"Softmax", {1, 11, 13}, along_axis([](const Tensor& x, int axis) { return softmax(x, axis); })},
};

}  // namespace
}  // namespace gradus::onnx
