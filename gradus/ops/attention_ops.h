/// Attention as two primitives, computed in blocks of queries, whose scores never stand in memory: the softmax of
/// products and the products with it, and all three gradients. What scaled_dot_product_attention is made of where
/// nothing but masks comes between; attention_definition() says what they are in terms of other ops.
#pragma once
#include "gradus/graph/region.h"

namespace gradus {

/// query: T[batch, queries, heads, width], key: T[batch, keys, key_heads, width], value: T[batch, keys, key_heads,
/// value_width], then a mask if `masked`: booleans or T, [batch or 1, heads or 1, queries or 1, keys or 1], and
/// -> T[batch, queries, heads, value_width]. T is f32, f64 or bf16. With `causal` query i sees keys 0 ... i.
/// Of bf16 the products take pairs as those of matrices do, and sum in f32; the mask is f32, and so are scores and the
/// softmax of their scaled values; weights, and in the gradient scores' gradients, are rounded to bf16 for the products
/// with them, as in other frameworks.
/// Time stands before heads, as in what projections give. A primitive since scores of a block of queries are computed,
/// used and forgotten in the cache, and those behind the block's last query are not computed at all.
struct Attention {
  static constexpr auto name = "attention";
  static constexpr auto library_kernel = "attention";
  static constexpr auto takes = Takes::anything;
  double scale = 1;
  bool causal = false;
  bool masked = false;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// query, key, value, dy: T[batch, queries, heads, value_width], and the mask -> T[batch, all]: for each example the
/// gradients by its queries, its keys and its values, one after the other. Scores are computed again.
struct AttentionGradient {
  static constexpr auto name = "attention_gradient";
  static constexpr auto library_kernel = "attention_gradient";
  static constexpr auto takes = Takes::anything;
  double scale = 1;
  bool causal = false;
  bool masked = false;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// The region that computes `op`, one of the two above, of operands of these specs with other ops; else an empty one.
Region attention_definition(const AnyOp& op, Specs in);

}  // namespace gradus
