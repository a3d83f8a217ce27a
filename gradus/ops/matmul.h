/// Matrix products and Einstein sums.
#pragma once
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Matrix product. a: T[batches..., m, k], b: T[batches..., k, n] -> T[batches..., m, n]. T is floating, or an integer
/// type of 32 or 64 bits. Leading dimensions are batches that broadcast as in NumPy. Batches of `a` with a
/// two-dimensional `b` are one tall product.
///
/// Every element is one chain of fused multiply-adds in the order of k. For f16 and bf16 it is a chain of f32, rounded
/// at its end; that of bf16 takes k in pairs, the odd one first. On processors with AMX an element of bf16 sums the
/// same products in another order, even and odd k separately (architecture.md, the numeric contract).
Tensor matmul(const Tensor& a, const Tensor& b);

/// Sums of products in Einstein's notation: "bij,bjk->bik". Letters name dimensions; `...` stands for leading ones that
/// broadcast. A letter twice in one operand is its diagonal. Without "->" the result has the letters that occur once,
/// in alphabetical order. Any number of operands; they are contracted in pairs, first the pair whose product is
/// smallest relative to its operands.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& inputs);

}  // namespace gradus
