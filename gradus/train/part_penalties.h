/// Penalties of a batch in parts. They have other weights than losses: those on variables count once, those on what
/// layers gave by the rows of each part, whatever their examples weigh.
#pragma once
#include "gradus/gradients/gradients.h"
#include "gradus/gradients/tape.h"
#include "gradus/train/task.h"

namespace gradus {

class PartPenalties {
 public:
  /// Of `rows` rows in all. The model must outlive this.
  PartPenalties(const Module& model, std::int64_t rows);
  /// The gradients of a part's loss, which the persistent `tape` saw; what penalties there are is kept for the end.
  Gradients gradient(GradientTape& tape, const Examined& part, std::int64_t rows);
  /// Adds them, once all parts are added.
  void add_to(Loss& loss, Gradients& gradients) const;

 private:
  const Module& model_;
  const Variables variables_;
  const std::int64_t rows_;
  Tensor of_activities_;
  Tensors gradients_;  // of them; empty: none
};

}  // namespace gradus
