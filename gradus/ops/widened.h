/// Computing narrow floats, f16 and bf16, in a wider type. Composites of several steps, and sums of many numbers, are
/// rounded once, and so are their gradients.
#pragma once
#include "gradus/ops/checks.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

/// x, with narrow floats in f32.
inline Tensor widened(const Tensor& x) { return cast(x, computed_in(x.dtype())); }

/// x, with integers and booleans in f32.
inline Tensor in_floats(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, f32); }

/// f(x), with narrow floats computed in f32 and rounded once.
template <class F> Tensor in_computed_dtype(const Tensor& x, const F& f) {
  return is_narrow(x.dtype()) ? in_f32(x, f) : f(x);
}
/// f(a, b) in the same way. They have one dtype, and f broadcasts them, so gradients are summed in f32, too.
template <class F> Tensor in_computed_dtype(const Tensor& a, const Tensor& b, const F& f) {
  return is_narrow(a.dtype()) ? cast(f(widened(a), widened(b)), a.dtype()) : f(a, b);
}
/// f of both, broadcast to one shape. InvalidArgument, opened by `op`, unless they have one float type.
template <class F> Tensor in_computed_dtype(std::string_view op, const Tensor& a, const Tensor& b, const F& f) {
  require_floating(a, b, op);
  return in_computed_dtype(a, b, [&](const Tensor& x, const Tensor& y) {
    const auto [left, right] = broadcast_together(x, y, op);
    return f(left, right);
  });
}

}  // namespace gradus
