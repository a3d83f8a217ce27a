/// The verdict about a lever, from its figures, in words.
#pragma once
#include "gradus/advice/comparison.h"
#include "gradus/advice/levers.h"

namespace gradus {

/// The result of a trial, beside the training as it is.
struct Evidence {
  Comparison times;
  std::size_t bytes_before = 0, bytes_after = 0;
  double difference = 0;  // of losses
};

struct Judgement {
  Lever row;
  bool adopts = false;  // true if the tried setting takes the place of the present one
};

/// For a lever that is in use, the trial was without it; the row describes having it.
Judgement judge(const LeverKind& kind, const Proposal& proposal, bool is_in_use, const Evidence& shown);

/// The row of two tries, one on top of the other.
Lever joined(const Lever& first, const Lever& then);

}  // namespace gradus
