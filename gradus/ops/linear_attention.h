/// Attention without a softmax: a matrix a head is carried along time, which keys write and queries read.
#pragma once
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

struct LinearAttentionOptions {
  std::int64_t heads = 1, key_heads = 1;  // heads is a multiple of key_heads
  Tensor past_state = {};                 // [batch, key_heads, width, value_width]; else zeros
  Tensor decay = {};  // [batch, time, key_heads or key_heads * width]: the state is multiplied with exp(decay) first
  Tensor beta = {};   // [batch, time, key_heads or 1]: written is beta (v - what the key reads), the delta rule
  std::optional<double> scale = {};  // of what is read; else 1 / sqrt(width)
  static constexpr auto ranges() { return std::array{Allowed::positive("heads key_heads"), Allowed::finite("scale")}; }
};
struct LinearAttentionResult {
  Tensor output, state;  // [batch, time, heads * value_width], [batch, key_heads, width, value_width]
};
/// At each time state = exp(decay) state + k' v, output = scale q state (Katharopoulos et al. 2020; with decay and beta
/// Yang et al. 2024). query: [batch, time, heads * width], key: [batch, time, key_heads * width], value: [batch, time,
/// key_heads * value_width], of one floating dtype; narrow ones are computed in f32.
LinearAttentionResult linear_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const LinearAttentionOptions& options);

}  // namespace gradus
