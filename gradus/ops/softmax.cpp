/// The softmax family. The row's largest element is subtracted first; no gradient flows through it, since it cancels.
#include "gradus/ops/softmax.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

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
Tensor log_softmax(const Tensor& x, int axis) { return apply(LogSoftmax{axis}, x); }

}  // namespace gradus
