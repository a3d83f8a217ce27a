/// Division of the examples of a data set in two, as by fit's validation_split.
#pragma once
#include <string_view>
#include "gradus/data/pipeline.h"

namespace gradus {

/// Two data sets that have no example in common.
struct SplitPipeline {
  Pipeline first, last;
};

/// `last` has the last `share` of the examples, `first` those before them; both pass through the same stages. The
/// examples are those of the last stage that gives them singly, by index, and in the same order in every epoch: so a
/// shuffle behind it moves none from one part to the other. InvalidArgument, opened by `what`, if there is no such
/// stage, and if a part would be empty.
SplitPipeline split_examples(std::string_view what, const Pipeline& dataset, double share);

}  // namespace gradus
