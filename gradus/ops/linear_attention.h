/// Linear attention, without a softmax: keys write to a matrix per head, which is the state over time, and queries read
/// it.
#pragma once
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of linear_attention.
struct LinearAttentionOptions {
  std::int64_t heads = 1, key_heads = 1;  // heads is a multiple of key_heads
  Tensor past_state = {};                 // [batch, key_heads, width, value_width]; zeros by default
  Tensor decay = {};  // [batch, time, key_heads or key_heads * width]: the state is multiplied by exp(decay) first
  Tensor beta = {};   // [batch, time, key_heads or 1]: the delta rule, which writes beta (v - what the key reads)
  std::optional<double> scale = {};  // factor on the values read; 1 / sqrt(width) by default
  static constexpr auto ranges() { return std::array{Allowed::positive("heads key_heads"), Allowed::finite("scale")}; }
};
/// Result of linear_attention.
struct LinearAttentionResult {
  Tensor output, state;  // [batch, time, heads * value_width], [batch, key_heads, width, value_width]
};
/// At each time: state = exp(decay) state + k' v, output = scale q state (Katharopoulos et al. 2020; with decay and
/// beta Yang et al. 2024).
/// query: [batch, time, heads * width], key: [batch, time, key_heads * width], value: [batch, time, key_heads *
/// value_width]. One floating dtype; narrow ones are computed in f32.
LinearAttentionResult linear_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const LinearAttentionOptions& options);

}  // namespace gradus
