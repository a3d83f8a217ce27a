/// The place of a training in its data, for a resumed training that counts differently: in batches of another size, or
/// in other numbers of steps. It is counted in rows, so that none is read twice or left out.
#pragma once
#include <optional>
#include <string>
#include "gradus/base/rooms.h"
#include "gradus/train/training_facts.h"

namespace gradus {

struct TrainingPlace {
  Position next;               // the epoch, and its finished steps
  std::int64_t stream = 0;     // if steps are counted: elements of all passes so far
  std::int64_t rows_done = 0;  // rows of the next element that smaller or larger batches have used
  bool operator==(const TrainingPlace&) const = default;
};

/// Converts the place `then` of a training with the facts `before` to one with the facts `now`. InvalidArgument, opened
/// by `where`, if that is not possible.
TrainingPlace place_in(const TrainingFacts& now, const TrainingPlace& then, const TrainingFacts& before,
                       const std::string& where);

/// "within epoch 2, after 96 rows" for a place in the midst of a pass over the data; empty at its begin.
std::string within_pass(const TrainingPlace& place, const TrainingFacts& facts);

}  // namespace gradus
