/// Blocks of layers that configurations name.
#pragma once
#include "gradus/gradus.h"

namespace gradus::command {

struct TransformerBlockOptions {
  std::int64_t heads = 4, width = 64;  // width: that of the input, divided among the heads
  std::int64_t inner = 256;            // units between the two Dense layers
  double dropout = 0;
};
/// x + attention(norm(x)), then x + dense(gelu(dense(norm(x)))), causal: [batch, time, width], the same shape.
Module transformer_block(const TransformerBlockOptions& options);

}  // namespace gradus::command
