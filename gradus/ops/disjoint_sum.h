/// Gradients of slices are their cotangents between zeros. What slices of one tensor give back adds up to the
/// cotangents side by side, which takes one copy instead of one for each slice and their sum.
#pragma once
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// a + b, joined from their parts, if both are concatenations along one axis and wherever they meet one of them is
/// zeros as a rule makes them; else nothing.
std::optional<Tensor> disjoint_sum(const Tensor& a, const Tensor& b);

/// Whether `x` is zeros as a rule makes them.
bool is_zeros(const Tensor& x);

}  // namespace gradus
