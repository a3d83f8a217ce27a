/// Converts batches to rows, and back.
#include "gradus/train/training_place.h"
#include "gradus/base/error.h"

namespace gradus {
namespace {

/// The units of a training's places; -1: unknown.
struct Counting {
  std::int64_t steps, batch_size, batches;
  explicit Counting(const TrainingFacts& facts)
      : steps(number_of(facts, "steps_per_epoch", 0)),
        batch_size(number_of(facts, "batch_size", -1)),
        batches(number_of(facts, "batches", -1)) {}
  bool counts_steps() const { return steps > 0; }
};

/// The element of a pass that contains a row, and the number of its rows before that row.
struct BatchPlace {
  std::int64_t index, rows_done;
};

BatchPlace element_after(std::int64_t batches_then, const Counting& before, const Counting& now,
                         const std::string& where) {
  if (batches_then == 0 || before.batch_size == now.batch_size) return {batches_then, 0};
  require(before.batch_size > 0 && now.batch_size > 0, where,
          ": the checkpoint is in the midst of a pass over the data, and it is not known how many rows a batch has, in "
          "the program or before; go on with the batches that the training began with");
  const std::int64_t rows = batches_then * before.batch_size;
  if (now.batches >= 0 && rows / now.batch_size >= now.batches) return {now.batches, 0};
  return {rows / now.batch_size, rows % now.batch_size};
}

void require_length(const Counting& counting, const std::string& where) {
  require(counting.batches > 0, where,
          ": steps_per_epoch or the size of batches is another than before, and how many batches a pass over the data "
          "has is not known, so the place in it is not either; go on with those that the training began with");
}

}  // namespace

TrainingPlace place_in(const TrainingFacts& now_facts, const TrainingPlace& then, const TrainingFacts& before_facts,
                       const std::string& where) {
  const Counting now(now_facts), before(before_facts);
  TrainingPlace place = then;
  if (!before.counts_steps() && !now.counts_steps()) {
    const BatchPlace element = element_after(then.next.index, before, now, where);
    place.next.index = element.index;
    place.rows_done = element.rows_done;
    return place;
  }
  const bool same_batches = before.batch_size == now.batch_size && before.batches == now.batches;
  if (before.counts_steps() && now.counts_steps() && same_batches) return place;
  if (!before.counts_steps())
    place.stream = before.batches < 0 ? -1 : then.next.epoch * before.batches + then.next.index;
  if (place.stream == 0 && now.counts_steps()) return place;
  require_length(before, where);
  require_length(now, where);
  const BatchPlace element = element_after(place.stream % before.batches, before, now, where);
  place.stream = place.stream / before.batches * now.batches + element.index;
  place.rows_done = element.rows_done;
  if (now.counts_steps()) return place;
  require(place.stream / now.batches == then.next.epoch, where, ": the training counted steps_per_epoch ", before.steps,
          " and is in pass ", place.stream / now.batches + 1, " over the data in epoch ", then.next.epoch + 1,
          "; without steps_per_epoch both are one: go on with ", before.steps);
  place.next.index = place.stream % now.batches;
  return place;
}

std::string within_pass(const TrainingPlace& place, const TrainingFacts& facts) {
  const Counting counting(facts);
  std::int64_t done = place.next.index;
  if (counting.counts_steps()) done = counting.batches > 0 ? place.stream % counting.batches : place.stream;
  if (done == 0) return {};
  if (counting.batch_size <= 0) return text("within epoch ", place.next.epoch + 1, ", after ", done, " elements");
  return text("within epoch ", place.next.epoch + 1, ", after ", done * counting.batch_size, " rows");
}

}  // namespace gradus
