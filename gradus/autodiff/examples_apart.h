/// Checks on the graph that examples do not mix: batch_jacobian relies on it for gradients, a rank that reads its own
/// rows of a batch for values.
#pragma once
#include <string_view>
#include "gradus/autodiff/vjp.h"

namespace gradus {

/// Examples lie along dimension 0 of x: [n, ...] and y: [n, ...]. InvalidArgument, opened by `op`, unless every example
/// of y depends on the same example of x alone wherever a gradient flows. It names the op that mixes them. Ops that do
/// not tell how they treat their operands count as mixing.
void require_examples_apart(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops);

/// True if, as is certain, every row along dimension 0 of each of `ys`, [n, ...], is made of the same rows of the
/// parameters `xs` alone, and in the same way for every number of rows: `others`, of the same function for `others_xs`
/// with another number of rows, are made in the same way. A scalar among `ys` is made of no row.
bool are_rows_apart(In ys, In xs, In others, In others_xs);

}  // namespace gradus
