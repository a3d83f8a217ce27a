/// Members of steps that cost less to compute again than to store and to read.
#pragma once
#include "gradus/compiler/steps.h"

namespace gradus {

/// They become members of each step that reads them, and are stored no more. Steps keep their order; no bit changes.
std::vector<Step> remake(const Graph& graph, std::vector<Step> steps);

}  // namespace gradus
