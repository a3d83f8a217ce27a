/// Finding the stage whose elements are divided.
#include "gradus/data/split.h"
#include <cmath>
#include "gradus/base/error.h"
#include "gradus/data/pipeline_changes.h"

namespace gradus {
namespace {

/// True if one example may come twice, and so in both parts.
bool is_repeated(const Stage& stage) {
  const std::vector<const Stage*> sources = stage.sources();
  return stage.name().starts_with("repeat") || (sources.size() == 1 && is_repeated(*sources[0]));
}

bool gives_examples_by_index(const Stage& stage) {
  return stage.batchings() == 0 && stage.is_counted() && !stage.is_endless() && stage.repeats_itself() &&
         !is_repeated(stage);
}

/// The stage that makes the number of elements unknown.
const Stage& uncounted_stage(const Stage& stage) {
  const std::vector<const Stage*> sources = stage.sources();
  return sources.size() == 1 && !sources[0]->is_counted() ? uncounted_stage(*sources[0]) : stage;
}

constexpr std::string_view apart =
    "; give a validation set apart: .validation = dataset.take(n), and train on dataset.skip(n)";

/// The stage with the examples; throws if a stage on the way to it cannot be divided.
const Stage& stage_of_examples(std::string_view what, const Stage& stage) {
  if (gives_examples_by_index(stage)) return stage;
  require(stage.is_counted(), what, ": the stage ", uncounted_stage(stage).name(), " of the data set cannot be ",
          "divided by index, since the number of its elements is known only when they are read", apart);
  const std::vector<const Stage*> sources = stage.sources();
  require(sources.size() == 1, what, ": the stage ", stage.name(),
          " of the data set cannot be divided by index, since ",
          "its elements are not single examples in the same order in every epoch", apart);
  return stage_of_examples(what, *sources[0]);
}

Pipeline part_of(const Pipeline& dataset, const Stage& examples, std::int64_t begin, std::int64_t count) {
  return dataset.changed({.window = ExampleWindow{&examples, begin, count}});
}

}  // namespace

SplitPipeline split_examples(std::string_view what, const Pipeline& dataset, double share) {
  const Stage& examples = stage_of_examples(what, dataset.stage());
  const std::int64_t all = examples.length(0);
  const auto first = static_cast<std::int64_t>(std::floor(static_cast<double>(all) * (1.0 - share)));  // as in Keras
  require(first > 0 && first < all, what, ": the data set has ", all, " examples, of which ", share,
          " leaves none for ", first > 0 ? "validation" : "training", "; give more data, or another share");
  return {part_of(dataset, examples, 0, first), part_of(dataset, examples, first, all - first)};
}

}  // namespace gradus
