/// Copies between devices.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// The operand on another device: the same bits. `to` names none: on the default device, uncommitted again.
struct Copy {
  static constexpr auto name = "copy";
  static constexpr auto takes = Takes::anything;
  Placement to = {};
  auto emit(const auto& x) const { return x; }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
};

Tensor copy_to(const Tensor& x, Placement to);

}  // namespace gradus
