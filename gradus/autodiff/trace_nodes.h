/// Nodes of a trace that is over, which a transform rebuilds in the context around it.
#pragma once
#include <cstdint>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// The nodes of trace `trace` that `roots` need, operands first, without its symbols. Empty handles are skipped.
std::vector<Ref<Node>> nodes_of_trace(In roots, std::uint32_t trace);

}  // namespace gradus
