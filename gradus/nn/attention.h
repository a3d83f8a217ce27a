/// Attention layers, with Keras's defaults. Variables: query/kernel [inputs, heads, key_dim] and query/bias, the same
/// of key and value, attention_output/kernel [heads, value_dim, outputs] and its bias; outputs: as the query has.
#pragma once
#include <optional>
#include <string>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"

namespace gradus {

struct AttentionOptions {
  bool causal = false;  // no query looks at keys after its place
  double dropout = 0;   // of the weights, in training
  bool use_bias = true;
  std::optional<std::int64_t> value_dim = {};  // else key_dim
  std::string name = {};
  Regularizer kernel_regularizer = {}, bias_regularizer = {};  // of all projections
  Regularizer activity_regularizer = {};                       // of what each of them gives, as in Keras
  static constexpr auto ranges() {
    return std::array{Allowed::share_below_one("dropout"), Allowed::positive("value_dim")};
  }
};

/// Booleans that broadcast to [batch, heads, queries, keys]; false: not looked at. A query that no key is left for gets
/// zeros before the output projection. A number tensor of the input's dtype is added to the scores instead.
struct AttentionMask {
  Tensor mask = {};
};

/// heads times softmax(q k' / sqrt(key_dim)) v of projections, joined and projected (Vaswani et al. 2017). query:
/// [batch, queries, inputs], key and value: [batch, keys, inputs] -> [batch, queries, inputs of the query]. Masks that
/// the layers before gave their results, of the query, key and value, hold besides the one given; that of the query is
/// handed on.
struct MultiHeadAttention : Module {
  MultiHeadAttention(std::int64_t heads, std::int64_t key_dim, AttentionOptions options = {});
  using Module::operator();  // attention(x): to itself
  Tensor operator()(const Tensor& x, AttentionMask mask) const;
  /// In the order of the paper; Keras has (query, value, key).
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value, AttentionMask mask = {}) const;

 protected:
  MultiHeadAttention(std::int64_t heads, std::int64_t key_heads, std::int64_t key_dim, AttentionOptions options);
};

/// The same where `query_heads / key_value_heads` neighbouring heads share one head of keys and values (Ainslie et al.
/// 2023). InvalidArgument unless key_value_heads divides query_heads.
struct GroupedQueryAttention : MultiHeadAttention {
  GroupedQueryAttention(std::int64_t head_dim, std::int64_t query_heads, std::int64_t key_value_heads,
                        AttentionOptions options = {});
};

}  // namespace gradus
