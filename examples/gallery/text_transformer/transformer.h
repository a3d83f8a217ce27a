// A causal transformer over characters: the blocks of the model that main.cpp trains.
#pragma once
#include <gradus/gradus.h>

struct TransformerOptions {
  int vocabulary, context, width = 64, heads = 4, layers = 2;
  double dropout = 0.1;
};

class TransformerBlock {
 public:
  explicit TransformerBlock(const TransformerOptions& options);
  gradus::Tensor operator()(gradus::Tensor x) const;  // [batch, time, width]

 private:
  gradus::LayerNormalization before_attention_, before_mlp_;
  gradus::MultiHeadAttention attention_;
  gradus::Dense widen_, narrow_;
  gradus::Dropout dropout_;
};

class Transformer {
 public:
  explicit Transformer(const TransformerOptions& options);
  gradus::Tensor operator()(const gradus::Tensor& tokens) const;  // [batch, time] -> [batch, time, vocabulary]
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
