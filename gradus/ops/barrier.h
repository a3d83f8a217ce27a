/// Barriers: keep the compiler and the schedule from computing early a value that is needed late.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// x, not available before `after` is. Never merged with x: neither the compiler nor the schedule look through it.
/// Costs nothing.
struct Barrier {
  static constexpr auto name = "barrier";
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};
/// x behind a Barrier that waits for `after`.
Tensor barrier(const Tensor& x, const Tensor& after);

}  // namespace gradus
