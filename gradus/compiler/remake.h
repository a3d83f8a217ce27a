/// The pass `remake`: a value that products read once more after a long time, such as the activations that the gradient
/// of a kernel needs, is not kept until then if a later kernel has most of it in registers: that one stores it again.
/// It costs a store where the first one has left the caches anyway, and no bit changes.
#pragma once
#include "gradus/compiler/steps.h"
#include "gradus/compiler/target_model.h"

namespace gradus {

/// The steps of `graph`, which gets copies of formulas. `steps` are those that fuse() makes of it with `copies`, as
/// rederive() gives them: a kernel that computes formulas again may store their results.
std::vector<Step> remake(Graph& graph, std::vector<Step> steps, PerValue<int> copies, const TargetModel& target = {});

}  // namespace gradus
