/// The pass `rederive`: values that one kernel would store for later ones are computed again by them where that moves
/// fewer bytes, such as the derivative of an activation from the activation's argument, which is in memory anyway. No
/// bit changes: a copy is the same op on the same operands.
#pragma once
#include "gradus/compiler/steps.h"
#include "gradus/compiler/target_model.h"

namespace gradus {

/// `steps` are those that fuse() makes of `graph`. Where it pays, the graph gets copies of formulas for late readers,
/// `copies` says which values these are, as fuse() wants it, and the steps are those of the new graph. Else nothing
/// changes.
std::vector<Step> rederive(Graph& graph, std::vector<Step> steps, PerValue<int>* copies = nullptr,
                           const TargetModel& target = {});

}  // namespace gradus
