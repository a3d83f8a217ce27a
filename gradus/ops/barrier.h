/// Barriers: what keeps the compiler and the schedule from computing early what is to be computed late.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// x, that is not there before `after` is, and that is never one with x: neither the compiler nor the schedule look
/// through it. Costs nothing.
struct Barrier {
  static constexpr auto name = "barrier";
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};
Tensor barrier(const Tensor& x, const Tensor& after);

}  // namespace gradus
