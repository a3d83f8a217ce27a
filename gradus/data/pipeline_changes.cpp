/// Copies from the last stage to the sources.
#include "gradus/data/pipeline_changes.h"
#include <algorithm>
#include "gradus/base/error.h"
#include "gradus/data/pipeline.h"

namespace gradus {
namespace {

bool is_cache(const Stage& stage) { return stage.name() == "cache"; }

/// True if it takes work to give its elements: more than choosing rows of what lies in memory.
bool makes_elements(const Stage& stage) {
  if (is_cache(stage)) return false;
  const std::vector<const Stage*> sources = stage.sources();
  if (sources.empty()) return stage.held_bytes() == 0;
  constexpr std::string_view names[] = {"map",          "filter", "take_while",      "interleave",        "bucket",
                                        "padded_batch", "scan",   "group_by_window", "rejection_resample"};
  const std::string name = stage.name();
  return std::ranges::any_of(names, [&](std::string_view begin) { return name.starts_with(begin); }) ||
         std::ranges::any_of(sources, [](const Stage* source) { return makes_elements(*source); });
}

/// The longest of several sources that are read side by side is read once, and the others as often as needed.
void repeat_shorter_ones(const std::vector<const Stage*>& sources, PipelineChanges changes,
                         std::vector<StagePointer>& copies) {
  std::int64_t longest = 0;
  for (const StagePointer& copy : copies) longest = std::max(longest, copy->length(0));
  changes.without_repeats = false;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (copies[i]->length(0) < longest) copies[i] = changed(sources[i]->shared_from_this(), changes);
}

}  // namespace

StagePointer cached(StagePointer source, const PipelineChanges& changes) {
  if (changes.cached_batches > 0) {
    const bool is_example = source->batchings().value_or(0) == 0;
    source = window_stage(source, 0, changes.cached_batches * (is_example ? changes.rows : 1));
  }
  return cache_stage(std::move(source));
}

const Stage* worth_caching(const Stage& stage) {
  if (!makes_elements(stage) || stage.is_endless()) return nullptr;
  if (stage.repeats_itself()) return &stage;
  for (const Stage* source : stage.sources())
    if (const Stage* found = worth_caching(*source)) return found;
  return nullptr;
}

StagePointer changed(const StagePointer& stage, PipelineChanges changes) {
  if (changes.window && changes.window->of == stage.get())
    return window_stage(stage, changes.window->begin, changes.window->count);
  const std::vector<const Stage*> sources = stage->sources();
  const bool caches = changes.cache && worth_caching(*stage) == stage.get();
  if (caches) changes.cache = false;
  StagePointer copy = stage;
  if (!sources.empty()) {
    PipelineChanges of_sources = changes;
    if (stage->batch_size()) of_sources.batch_size.reset();
    std::vector<StagePointer> copies;
    for (const Stage* source : sources) copies.push_back(changed(source->shared_from_this(), of_sources));
    if (changes.without_repeats && copies.size() > 1) repeat_shorter_ones(sources, of_sources, copies);
    copy = stage->over(copies, changes);
    require(copy != nullptr, "the stage ", stage->name(), " of this data set cannot be ",
            changes.window ? "read of a part of its examples; give a validation set apart, by .validation"
                           : "tried with other options");
  }
  if (!caches) return copy;
  return cached(std::move(copy), changes);
}

void for_each_stage(const Stage& stage, const std::function<void(const Stage&)>& visit) {
  visit(stage);
  for (const Stage* source : stage.sources()) for_each_stage(*source, visit);
}

Pipeline Pipeline::changed(const PipelineChanges& changes) const {
  Pipeline result(*this);
  result.stage_ = gradus::changed(stage_, changes);
  return result;
}

Pipeline Pipeline::read_ahead_by(PrefetchOptions options) const {
  Pipeline result(*this);
  result.ahead_ = options;
  return result;
}

}  // namespace gradus
