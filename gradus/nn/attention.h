/// Multi-head attention layers, with Keras's defaults. Variables: query/kernel [inputs, heads, key_dim] and query/bias,
/// likewise for key and value; attention_output/kernel [heads, value_dim, outputs] and its bias. outputs is the width
/// of the query.
#pragma once
#include <optional>
#include <string>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"

namespace gradus {

/// Options of MultiHeadAttention and GroupedQueryAttention.
struct AttentionOptions {
  bool causal = false;                                         // queries do not see keys after their place
  double dropout = 0;                                          // share of the weights that is dropped in training
  bool use_bias = true;                                        // the projections have biases
  std::optional<std::int64_t> value_dim = {};                  // width of a head of values; key_dim by default
  std::string name = {};                                       // empty: by its class
  Regularizer kernel_regularizer = {}, bias_regularizer = {};  // penalties on all projections
  Regularizer activity_regularizer = {};                       // on the result of each projection, as in Keras
  /// Given: queries and keys get rotary position embeddings (rotary_embedding) of angles place / rope_scaling_factor /
  /// rope_max_wavelength^(2 i / key_dim), as in LLaMA with 10000. Elements i and i + key_dim / 2 are a pair. Places are
  /// numbered from 0; with a KeyValueCache, from its length.
  std::optional<double> rope_max_wavelength = {};
  double rope_scaling_factor = 1;  // places are divided by it
  static constexpr auto ranges() {
    return std::array{Allowed::share_below_one("dropout"), Allowed::positive("value_dim"),
                      Allowed::positive("rope_max_wavelength rope_scaling_factor")};
  }
};

/// Attention mask: booleans that broadcast to [batch, heads, queries, keys]; false hides a key. A query whose keys are
/// all hidden gets zeros before the output projection. A tensor of numbers of the input's dtype is added to the scores
/// instead.
struct AttentionMask {
  Tensor mask = {};  // empty: no mask
};

/// Multi-head attention: heads times softmax(q k' / sqrt(key_dim)) v of projections, joined and projected (Vaswani et
/// al. 2017). query: [batch, queries, inputs], key and value: [batch, keys, inputs] -> [batch, queries, inputs of the
/// query]. Masks that earlier layers gave to query, key and value apply besides the mask argument. The query's mask is
/// passed on.
struct MultiHeadAttention : Module {
  MultiHeadAttention(std::int64_t heads, std::int64_t key_dim, AttentionOptions options = {});
  using Module::operator();  // attention(x): self-attention
  /// Self-attention with a mask.
  Tensor operator()(const Tensor& x, AttentionMask mask) const;
  /// Arguments in the order of the paper; Keras has (query, value, key).
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value, AttentionMask mask = {}) const;

 protected:
  MultiHeadAttention(std::int64_t heads, std::int64_t key_heads, std::int64_t key_dim, AttentionOptions options);
};

/// Multi-head attention where `query_heads / key_value_heads` neighbouring heads share one head of keys and values
/// (Ainslie et al. 2023). InvalidArgument unless key_value_heads divides query_heads.
struct GroupedQueryAttention : MultiHeadAttention {
  GroupedQueryAttention(std::int64_t head_dim, std::int64_t query_heads, std::int64_t key_value_heads,
                        AttentionOptions options = {});
};

}  // namespace gradus
