/// Sums of slice gradients. The gradient of a slice is its cotangent between zeros. Those of several slices of one
/// tensor add up to the cotangents side by side, which takes one copy instead of one per slice and their sum.
#pragma once
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// a + b, joined from their parts. Both must be concatenations along one axis, and wherever they meet one of them must
/// be zeros as a rule makes them; else the result is empty.
std::optional<Tensor> disjoint_sum(const Tensor& a, const Tensor& b);

/// True if `x` is zeros as a rule makes them.
bool is_zeros(const Tensor& x);

}  // namespace gradus
