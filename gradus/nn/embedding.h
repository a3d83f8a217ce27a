/// Embeddings: rows of a table by integers, and by place.
#pragma once
#include <string>
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"

namespace gradus {

struct EmbeddingOptions {
  Initializer embeddings_initializer = initializers::uniform(0.05);
  std::string name = {};
  bool mask_zero = false;  // 0 is no word: the result has a mask, which the layers that follow hand on and look at
  Regularizer embeddings_regularizer = {}, activity_regularizer = {};
};
/// integers [...] in [0, vocabulary) -> f32, or the policy's type, [..., width]; another number is an OutOfRange when
/// the value is observed. From 4096 rows on the gradient is kept as the rows that were read; optimizer.h says what a
/// step then costs.
struct Embedding : Module {
  Embedding(std::int64_t vocabulary, std::int64_t width, EmbeddingOptions options = {});
  /// [vocabulary, width]
  Variable& table() const;
  /// Where x is not 0: for recurrent layers, losses and, as [batch, 1, 1, time], attention. InvalidArgument without
  /// mask_zero.
  Tensor compute_mask(const Tensor& x) const;
};

/// x + the rows of a table that belong to its places: [batch, time, width] with time <= length, as KerasHub's
/// PositionEmbedding added to its input. InvalidArgument for more places.
struct PositionEmbedding : Module {
  explicit PositionEmbedding(std::int64_t length, EmbeddingOptions options = {});
};

/// Marks the places of [..., time, features] whose features all are mask_value as none, and makes them 0.
struct Masking : Module {
  Masking() : Masking(0) {}
  explicit Masking(double mask_value);
};

}  // namespace gradus
