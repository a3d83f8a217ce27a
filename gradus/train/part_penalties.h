/// Penalties of a batch in parts. They have other weights than losses: penalties on variables count once, activity
/// penalties count by the rows of each part, whatever the weights of their examples.
#pragma once
#include "gradus/gradients/gradients.h"
#include "gradus/gradients/tape.h"
#include "gradus/train/task.h"

namespace gradus {

using detail::Examined;

class PartPenalties {
 public:
  /// `rows`: rows of all parts together, or of one shard if a strategy divides the batch. The model must outlive this.
  PartPenalties(const Module& model, std::int64_t rows);
  /// The gradients of a part's loss, which the persistent `tape` recorded. Penalties are kept for the end.
  Gradients gradient(GradientTape& tape, const Examined& part, std::int64_t rows);
  /// Adds the penalties, once all parts are added.
  void add_to(Loss& loss, Gradients& gradients) const;

 private:
  const Module& model_;
  const Variables variables_;
  const std::int64_t rows_, rows_of_all_;  // of this shard, and of all shards
  Tensor of_activities_;
  Gradients gradients_;  // of the activity penalties
};

}  // namespace gradus
