/// Attention as two primitives, computed in blocks of queries (flash attention), so that scores never stand in memory.
/// One is the softmax of products and the products with it, the other all three gradients. scaled_dot_product_attention
/// consists of them where nothing but masks comes between. attention_definition() defines them by other ops.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/region.h"

namespace gradus {

/// query: T[batch, queries, heads, width], key: T[batch, keys, key_heads, width], value: T[batch, keys, key_heads,
/// value_width], and if `masked` a mask: booleans or T, [batch or 1, heads or 1, queries or 1, keys or 1]
/// -> T[batch, queries, heads, value_width].
/// T is f32, f64 or bf16. With `causal` query i sees keys 0 ... i. With bf16, products take pairs as matrix products
/// do, and sum in f32. The mask, the scores and the softmax of the scaled scores are f32. Weights, and in the gradient
/// the gradients of the scores, are rounded to bf16 for the products with them, as in other frameworks. Time stands
/// before heads, as in the result of a projection. This is a primitive since the scores of a block of queries are
/// computed, used and dropped within the cache. Scores of keys behind the block's last query are not computed at all.
struct BlockedAttention {
  static constexpr auto name = "attention";
  static constexpr auto library_kernel = "attention";
  static constexpr auto takes = Takes::anything;
  double scale = 1;
  bool causal = false;
  bool masked = false;
  bool heads_first = false;  // key and value are [batch, key_heads, keys, width], as a cache of them lies
  /// Up to so many queries of f32 or f64, keys and values are read once, in place, in either order.
  static constexpr std::int64_t few_queries = 4;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// query, key, value, dy: T[batch, queries, heads, value_width], and the mask -> T[batch, all]. For each example the
/// result holds the gradients of its queries, of its keys and of its values, one after the other. Scores are computed
/// again.
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

/// The order in which a sum of products adds up.
enum class SumOrder {
  contract,  // that of the numeric contract, so that the definition has the bits of the kernel
  any,       // as a device likes
};

/// A region that computes `op` by other ops, for operands of these specs. Empty unless `op` is one of the two above.
Region attention_definition(const AnyOp& op, Specs in, SumOrder order = SumOrder::contract);

}  // namespace gradus
