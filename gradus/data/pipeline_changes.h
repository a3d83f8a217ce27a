/// A chain of stages once more, with something changed: another size of batches, other threads, a cache.
#pragma once
#include <functional>
#include <optional>
#include "gradus/data/stage.h"

namespace gradus {

/// Elements [begin, begin + count) of a stage.
struct ExampleWindow {
  const Stage* of;
  std::int64_t begin, count;
};

/// The differences of the copy.
struct detail::PipelineChanges {
  std::optional<std::int64_t> batch_size = {};  // of the last batch of a chain
  std::optional<int> parallel_calls = {};       // of every map
  bool cache = false;                           // behind what is the same in every epoch
  bool without_repeats = false;                 // repeated data are read once
  /// The copy reads only this many batches, of `rows` rows each, of cached elements; 0: all.
  std::int64_t cached_batches = 0, rows = 1;
  std::optional<ExampleWindow> window = {};  // in place of the stage that it is of
};

/// A copy of `stage` and of all that it reads. Sources are shared; a cache of the copy is its own, in memory.
/// InvalidArgument names a stage that cannot be copied.
StagePointer changed(const StagePointer& stage, PipelineChanges changes);

/// A new cache behind `source`.
StagePointer cached(StagePointer source, const PipelineChanges& changes);

/// The stage that PipelineChanges::cache would keep; null if none is worth it: it is kept or lies in memory already, or
/// differs from epoch to epoch.
const Stage* worth_caching(const Stage& stage);

/// Calls `visit` for `stage` and all that it reads.
void for_each_stage(const Stage& stage, const std::function<void(const Stage&)>& visit);

}  // namespace gradus
