// A causal transformer over characters: the blocks of the model that main.cpp trains.
#pragma once
#include <gradus/gradus.h>

struct TransformerBlock {
  TransformerBlock(int width, int heads)
      : attention(heads, width / heads, {.causal = true, .dropout = 0.1}),
        widen(4 * width, gradus::gelu),
        narrow(width) {}
  gradus::Tensor operator()(gradus::Tensor x) const {  // [batch, time, width]
    x += attention(before_attention(x));
    return x + dropout(narrow(widen(before_mlp(x))));
  }

  gradus::LayerNormalization before_attention, before_mlp;
  gradus::MultiHeadAttention attention;
  gradus::Dense widen, narrow;
  gradus::Dropout dropout{0.1};
};

class Transformer {
 public:
  Transformer(int vocabulary, int context, int width, int layers)
      : embedding_(vocabulary, width), position_(context), scores_(vocabulary) {
    for (int i = 0; i < layers; ++i) blocks_.emplace_back(width, 4);
  }
  gradus::Tensor operator()(const gradus::Tensor& tokens) const {  // [batch, time] -> [batch, time, vocabulary]
    gradus::Tensor x = position_(embedding_(tokens));
    for (const auto& block : blocks_) x = block(x);
    return scores_(normalization_(x));
  }
  /// A class that keeps layers on the heap names all that it has, for the model to find.
  auto layers() const {
    return gradus::named_layers("embedding", embedding_, "position", position_, "blocks", blocks_, "normalization",
                                normalization_, "scores", scores_);
  }

 private:
  gradus::Embedding embedding_;
  gradus::PositionEmbedding position_;
  std::vector<TransformerBlock> blocks_;
  gradus::LayerNormalization normalization_;
  gradus::Dense scores_;
};
