/// Attention, and rotary embeddings of positions.
#pragma once
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

struct DotProductAttentionOptions {
  /// Broadcasts to [batch, heads, queries, keys], missing keys at the end count as masked: booleans, false: not looked
  /// at; or numbers of the dtype of the query, added to the scores.
  Tensor mask = {};
  /// Query i sees keys 0 ... i + offset alone, the offset being the number of past keys, or key_lengths - queries.
  bool causal = false;
  std::optional<double> scale = {};       // of the scores; else 1 / sqrt(width)
  double softcap = 0;                     // > 0: scores become softcap * tanh(scores / softcap), before the mask
  Tensor past_key = {}, past_value = {};  // [batch, key_heads, past, width]: come before key and value; both or none
  Tensor key_lengths = {};                // integers [batch]: the keys of each example after so many are padding
  std::int64_t left_window = -1, right_window = -1;  // query i sees keys i + offset - left ... + right; -1: all
  std::optional<DType> softmax_dtype = {};           // of the softmax; else that of the query
  double dropout = 0;  // this share of the weights is 0, the others grow to make up for it
  static constexpr auto ranges() {
    return std::array{Allowed::finite("scale"), Allowed::not_negative("softcap"),
                      Allowed::any("left_window right_window"), Allowed::share_below_one("dropout")};
  }
};

/// What attention goes through; what is not used is not computed.
struct AttentionSteps {
  Tensor output;                      // [batch, heads, queries, value_width]
  Tensor present_key, present_value;  // past and new
  Tensor scores;                      // scaled products of queries and keys, [batch, heads, queries, keys]
  Tensor capped;                      // after the softcap
  Tensor masked;                      // after the mask
  Tensor weights;                     // after the softmax
};

/// softmax(query key' * scale) value (Vaswani et al. 2017). query: [batch, heads, queries, width], key: [batch,
/// key_heads, keys, width], value: [batch, key_heads, keys, value_width], of one floating dtype; neighbouring heads
/// share a head of keys where there are fewer of these (grouped queries; heads a multiple of key_heads). A query that
/// no key is left for gets zeros, and no gradient. f16 is computed in f32 and rounded once. Of bf16 scores and softmax
/// are f32, too, but weights are rounded to bf16 before values are multiplied by them, and so are the gradients by
/// scores.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    DotProductAttentionOptions options = {});
/// The same, with all that lies between.
AttentionSteps attention_steps(const Tensor& query, const Tensor& key, const Tensor& value,
                               const DotProductAttentionOptions& options);

/// The weights of scaled scores, [batch, heads, queries, keys]: softcap, masks, `soften`, a softmax along the
/// last dimension. Of the options the others are not looked at.
Tensor attention_weights(const Tensor& scores, const DotProductAttentionOptions& options,
                         Tensor (*soften)(const Tensor& scores));

/// weights value: [batch, heads, queries, keys] and [batch, key_heads, keys, value_width] -> [batch, heads, queries,
/// value_width], where neighbouring heads share a head of values.
Tensor weighted_values(const Tensor& weights, const Tensor& value);

/// [batch, time, heads * width] -> [batch, heads, time, width], and back.
Tensor split_heads(const Tensor& x, std::int64_t heads);
Tensor join_heads(const Tensor& x);

struct RotaryOptions {
  Tensor positions = {};     // integers [batch, time]: rows of the tables; empty: the tables are those of each place
  bool interleaved = false;  // pairs are neighbours; else element i goes with element i + half
  std::int64_t width = 0;    // so many elements at the front of each head turn, an even number; 0: all
  static constexpr auto ranges() { return std::array{Allowed::not_negative("width")}; }
};
/// Turns pairs of elements by angles that depend on their place in the sequence (Su et al. 2021). x: [batch, heads,
/// time, head_width]; cosine, sine: [places, width / 2] with positions, else [batch or 1, time, width / 2] or [time,
/// width / 2], of the dtype of x, or f32 beside f16 and bf16, which is more precise. The shape of x. OutOfRange for a
/// position outside of the tables.
Tensor rotary_embedding(const Tensor& x, const Tensor& cosine, const Tensor& sine, RotaryOptions options = {});

}  // namespace gradus
