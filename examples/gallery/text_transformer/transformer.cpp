// The layers of transformer.h, and how they are called.
#include "transformer.h"
using namespace gradus;

TransformerBlock::TransformerBlock(const TransformerOptions& options)
    : attention_(options.heads, options.width / options.heads, {.causal = true, .dropout = options.dropout}),
      widen_(4 * options.width, gelu),
      narrow_(options.width),
      dropout_(options.dropout) {}

Tensor TransformerBlock::operator()(Tensor x) const {
  x += attention_(before_attention_(x));
  x += dropout_(narrow_(widen_(before_mlp_(x))));
  return x;
}

Transformer::Transformer(const TransformerOptions& options)
    : embedding_(options.vocabulary, options.width), position_(options.context), scores_(options.vocabulary) {
  for (int i = 0; i < options.layers; ++i) blocks_.emplace_back(options);
}

Tensor Transformer::operator()(const Tensor& tokens) const {
  Tensor x = position_(embedding_(tokens));
  for (const auto& block : blocks_) x = block(x);
  return scores_(normalization_(x));
}
