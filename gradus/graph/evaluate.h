/// Evaluation of symbols: specs, attributes and regions that were made for symbolic sizes, with numbers in their place.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/graph.h"

namespace gradus {

/// `op` with numbers for the symbols in any of its attributes.
AnyOp evaluated(const AnyOp& op, std::span<const std::int64_t> symbols);

/// `graph` for these values of its symbols.
Graph evaluated(const Graph& graph, std::span<const std::int64_t> symbols);

}  // namespace gradus
