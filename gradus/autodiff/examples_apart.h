/// Checks on the graph that examples do not mix, which batch_jacobian relies on.
#pragma once
#include <string_view>
#include "gradus/autodiff/vjp.h"

namespace gradus {

/// Examples lie along dimension 0 of x: [n, ...] and y: [n, ...]. InvalidArgument, opened by `op`, unless every example
/// of y depends on the same example of x alone wherever a gradient flows. It names the op that mixes them. Ops that do
/// not tell how they treat their operands count as mixing.
void require_examples_apart(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops);

}  // namespace gradus
