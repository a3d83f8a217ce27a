/// The softmax family. The row's largest element is subtracted first. No gradient flows through it, since it cancels.
#include "gradus/ops/softmax.h"
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

struct Shifted {
  Tensor x, sum;  // x - max, and sum(exp(x - max)) along the axis, which is kept
};

Shifted shifted(std::string_view op, const Tensor& x, int axis) {
  require(is_floating(x.dtype()), op, ": expected a floating type, got ", x.spec(), "; cast(x, f32) first");
  require(x.shape().rank() > 0, op, ": ", x.spec(), " has no axis");
  const ReduceOptions along{.axis = {axis}, .keepdims = true};
  const Tensor less = x - stop_gradient(reduce_max(x, along));
  return {less, reduce_sum(exp(less), along)};
}

}  // namespace

/// The vjp that follows from the parts is y*(dy - sum(dy*y)), and keeps its precision.
struct SoftmaxOp {
  static constexpr auto name = "softmax";
  int axis = -1;
  Tensor expand(In in) const {
    if (is_narrow(in[0].dtype())) return in_f32(in[0], [&](const Tensor& x) { return softmax(x, axis); });
    const Shifted s = shifted(name, in[0], axis);
    return exp(s.x) / s.sum;
  }
};

struct LogSoftmax {
  static constexpr auto name = "log_softmax";
  int axis = -1;
  Tensor expand(In in) const {
    if (is_narrow(in[0].dtype())) return in_f32(in[0], [&](const Tensor& x) { return log_softmax(x, axis); });
    const Shifted s = shifted(name, in[0], axis);
    return s.x - log(s.sum);
  }
};

Tensor softmax(const Tensor& x, int axis) { return apply(SoftmaxOp{axis}, x); }

/// The softmax of a row in which nothing counts sees zeros, so that nothing in it is NaN.
Tensor masked_softmax(const Tensor& x, const Tensor& mask, int axis) {
  constexpr std::string_view op = "masked_softmax";
  require(is_floating(x.dtype()), op, ": expected a floating type, got ", x.spec(), "; cast(x, f32) first");
  require(mask.dtype() == boolean && broadcast_shape(mask.shape(), x.shape(), op) == x.shape(), op, ": the mask is ",
          mask.spec(), ", expected booleans of a shape that broadcasts to ", x.spec());
  const Tensor counts = broadcast_to(mask, x.shape()), zero = fill_like(x, 0);
  const Tensor any = broadcast_to(reduce_any(counts, {.axis = {axis}, .keepdims = true}), x.shape());
  const Tensor left_out = where(any, fill_like(x, -std::numeric_limits<double>::infinity()), zero);
  return where(counts, softmax(where(counts, x, left_out), axis), zero);
}

Tensor log_softmax(const Tensor& x, int axis) { return apply(LogSoftmax{axis}, x); }

}  // namespace gradus
