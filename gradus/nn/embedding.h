/// Embeddings: rows of a table, chosen by integers or by position.
#pragma once
#include <string>
#include "gradus/nn/initializers.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"

namespace gradus {

/// Options of embeddings.
struct EmbeddingOptions {
  Initializer embeddings_initializer = initializers::uniform(0.05);  // first values of the table
  std::string name = {};                                             // empty: by its class
  bool mask_zero = false;  // 0 is padding: the result has a mask, which later layers use and pass on
  Regularizer embeddings_regularizer = {}, activity_regularizer = {};  // penalties on the table and the result
};
/// Rows of a table: integers [...] in [0, vocabulary) -> f32, or the policy's type, [..., width]. Another number is an
/// OutOfRange when the value is observed. From 4096 rows on the gradient is kept as the rows that were read;
/// optimizer.h describes the cost of a step.
struct Embedding : Module {
  Embedding(std::int64_t vocabulary, std::int64_t width, EmbeddingOptions options = {});
  /// The table, [vocabulary, width].
  Variable& table() const;
  /// The mask: true where x is not 0. For recurrent layers, losses and, as [batch, 1, 1, time], attention.
  /// InvalidArgument without mask_zero.
  Tensor compute_mask(const Tensor& x) const;
};

/// Learned position embedding: x plus row t of a table at time step t. x: [batch, time, width] with time <= length, as
/// KerasHub's PositionEmbedding added to its input. InvalidArgument for more steps.
struct PositionEmbedding : Module {
  explicit PositionEmbedding(std::int64_t length, EmbeddingOptions options = {});
};

/// Masks the time steps of [..., time, features] whose features all equal mask_value, and sets them to 0.
struct Masking : Module {
  Masking() : Masking(0) {}
  explicit Masking(double mask_value);
};

}  // namespace gradus
