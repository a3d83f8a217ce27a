/// The order of steps under a byte budget.
#pragma once
#include "gradus/compiler/steps.h"

namespace gradus {

/// Orders steps so that little is alive at once: one that frees more than it makes runs as soon as it can, the others
/// in the order of their last members. Steps that may fail, with all that they need, come first; one that could write
/// over a dying input waits for the other readers of it. `symbols`: the values of the graph's symbols.
std::vector<Step> order_for_memory(const Graph& graph, std::vector<Step> steps, std::span<const std::int64_t> symbols);

}  // namespace gradus
