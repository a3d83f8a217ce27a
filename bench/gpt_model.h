/// A small GPT: causal blocks over tokens.
#pragma once
#include <vector>
#include "gradus/function/variable.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/normalization.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/random.h"

namespace gradus::bench {

inline Tensor gelu_tanh(const Tensor& x) { return gelu(x, {.approximate = true}); }

/// The sizes of a model.
struct GptSize {
  std::int64_t vocabulary, places, width, heads;
  std::size_t layers;
};

struct GptBlock {
  LayerNormalization before_attention{{.epsilon = 1e-5}}, before_mlp{{.epsilon = 1e-5}};
  MultiHeadAttention attention;
  Dense up, down;
  Tensor operator()(Tensor x) const {
    x = x + attention(before_attention(x));
    return x + down(up(before_mlp(x)));
  }
};

struct Gpt {
  Embedding embed;
  PositionEmbedding place;
  std::vector<GptBlock> blocks;
  LayerNormalization last{{.epsilon = 1e-5}};
  Dense scores;
  Tensor operator()(Tensor tokens) const {
    Tensor x = place(embed(tokens));
    for (const GptBlock& block : blocks) x = block(x);
    return scores(last(x));
  }
};

inline Gpt gpt_of(const GptSize& size) {
  Gpt gpt{.embed = {size.vocabulary, size.width},
          .place = PositionEmbedding(size.places),
          .blocks = {},
          .scores = Dense(size.vocabulary, linear, {.use_bias = false})};
  for (std::size_t i = 0; i < size.layers; ++i)
    gpt.blocks.push_back({.attention = {size.heads, size.width / size.heads, {.causal = true}},
                          .up = Dense(4 * size.width, gelu_tanh),
                          .down = Dense(size.width)});
  return gpt;
}

/// Kernels and tables: normal of 0.02.
inline void draw_kernels(Variables variables) {
  std::uint64_t seed = 1;
  for (Variable& variable : variables)
    if (variable.name().ends_with("kernel") || variable.name().ends_with("embeddings"))
      variable.assign(random::normal(variable.shape(), {.stddev = 0.02, .seed = seed++}));
}

}  // namespace gradus::bench
