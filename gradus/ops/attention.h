/// Attention, and rotary position embeddings.
#pragma once
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of scaled_dot_product_attention.
struct DotProductAttentionOptions {
  /// Broadcasts to [batch, heads, queries, keys]; missing keys at the end count as masked. Either booleans, where false
  /// hides a key, or numbers of the query's dtype, which are added to the scores.
  Tensor mask = {};
  /// Query i sees only keys 0 ... i + offset. The offset is the number of past keys, or key_lengths - queries.
  bool causal = false;
  std::optional<double> scale = {};       // factor on the scores; 1 / sqrt(width) by default
  double softcap = 0;                     // if > 0: scores become softcap * tanh(scores / softcap), before the mask
  Tensor past_key = {}, past_value = {};  // [batch, key_heads, past, width], before key and value; both or none
  Tensor key_lengths = {};                // integers [batch]: number of keys of each example; later keys are padding
  std::int64_t left_window = -1, right_window = -1;  // query i sees keys i + offset - left ... + right; -1: no limit
  std::optional<DType> softmax_dtype = {};           // dtype of the softmax; the query's by default
  double dropout = 0;  // probability with which a weight becomes 0; the others are scaled up to make up for it
  static constexpr auto ranges() {
    return std::array{Allowed::finite("scale"), Allowed::not_negative("softcap"),
                      Allowed::any("left_window right_window"), Allowed::share_below_one("dropout")};
  }
};

/// All intermediate results of attention. Unused ones are not computed.
struct AttentionSteps {
  Tensor output;                      // [batch, heads, queries, value_width]
  Tensor present_key, present_value;  // keys and values with the past ones in front
  Tensor scores;                      // scaled products of queries and keys, [batch, heads, queries, keys]
  Tensor capped;                      // scores after the softcap
  Tensor masked;                      // scores after the mask
  Tensor weights;                     // attention weights, after the softmax
};

/// Scaled dot-product attention: softmax(query key' * scale) value (Vaswani et al. 2017).
/// query: T[batch, heads, queries, width], key: T[batch, key_heads, keys, width], value: T[batch, key_heads, keys,
/// value_width] -> T[batch, heads, queries, value_width]. T is a floating dtype.
/// Grouped queries: heads is a multiple of key_heads, and neighbouring heads share a head of keys. A query whose keys
/// are all masked gets zeros, and no gradient. f16 is computed in f32 and rounded once. With bf16, scores and softmax
/// are f32, too. The weights are rounded to bf16 before values are multiplied by them, and so are the gradients of the
/// scores.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    DotProductAttentionOptions options = {});
/// scaled_dot_product_attention with all its intermediate results.
AttentionSteps attention_steps(const Tensor& query, const Tensor& key, const Tensor& value,
                               const DotProductAttentionOptions& options);

/// Attention weights of scaled scores, [batch, heads, queries, keys]: softcap, masks, then `soften`, a softmax along
/// the last dimension. The other options are ignored.
Tensor attention_weights(const Tensor& scores, const DotProductAttentionOptions& options,
                         Tensor (*soften)(const Tensor& scores));

/// Product of weights and values: [batch, heads, queries, keys] and [batch, key_heads, keys, value_width] -> [batch,
/// heads, queries, value_width]. Neighbouring heads share a head of values.
Tensor weighted_values(const Tensor& weights, const Tensor& value);

/// [batch, time, heads * width] -> [batch, heads, time, width].
Tensor split_heads(const Tensor& x, std::int64_t heads);
/// Inverse of split_heads: [batch, heads, time, width] -> [batch, time, heads * width].
Tensor join_heads(const Tensor& x);

/// Options of rotary_embedding.
struct RotaryOptions {
  Tensor positions = {};     // integers [batch, time]: rows of the tables; empty: row t of a table is for time step t
  bool interleaved = false;  // true: neighbours form a pair; false: element i pairs with element i + half
  std::int64_t width = 0;    // number of elements at the front of each head that are rotated, even; 0: all
  static constexpr auto ranges() { return std::array{Allowed::not_negative("width")}; }
};
/// Rotary position embedding (Su et al. 2021): rotates pairs of elements by angles that depend on their position in the
/// sequence. x: T[batch, heads, time, head_width] -> the shape of x. cosine, sine: [rows, width / 2] with positions,
/// else [batch or 1, time, width / 2] or [time, width / 2]. The tables have the dtype of x; for x of f16 or bf16 they
/// may also be f32, which is more precise. OutOfRange for a position outside of the tables.
Tensor rotary_embedding(const Tensor& x, const Tensor& cosine, const Tensor& sine, RotaryOptions options = {});

}  // namespace gradus
