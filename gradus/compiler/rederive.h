/// The pass `rederive`: what one kernel would store for later ones is computed again by them where that moves fewer
/// bytes, such as the derivative of an activation from the activation's argument, which is in memory anyway. No bit
/// changes: a copy is the same op on the same operands.
#pragma once
#include "gradus/compiler/steps.h"

namespace gradus {

/// The steps that fuse() makes of `graph`, which may get copies of formulas for late readers: `copies`, if given, says
/// which values these are, as fuse() wants it, and stays empty if there are none.
std::vector<Step> fuse_and_rederive(Graph& graph, std::vector<int>* copies = nullptr);

}  // namespace gradus
