/// The transformer block as a struct of layers.
#include "apps/gradus/blocks.h"

namespace gradus::command {
namespace {

struct TransformerBlock {
  LayerNormalization attention_norm, dense_norm;
  MultiHeadAttention attention;
  Dense widen, narrow;
  Dropout attention_dropout, dense_dropout;
  Tensor operator()(Tensor x) const {
    x = x + attention_dropout(attention(attention_norm(x)));
    return x + dense_dropout(narrow(widen(dense_norm(x))));
  }
};

}  // namespace

Module transformer_block(const TransformerBlockOptions& o) {
  require(o.width % o.heads == 0, "transformer_block: ", o.heads, " heads do not divide the width, ", o.width);
  return Model<TransformerBlock>(
      {.attention = MultiHeadAttention(o.heads, o.width / o.heads, {.causal = true, .dropout = o.dropout}),
       .widen = Dense(o.inner, gelu),
       .narrow = Dense(o.width),
       .attention_dropout = Dropout(o.dropout),
       .dense_dropout = Dropout(o.dropout)});
}

}  // namespace gradus::command
