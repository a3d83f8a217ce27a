/// What was made for symbolic sizes, with numbers in place of the symbols: in specs, in attributes, in regions.
#pragma once
#include "gradus/graph/graph.h"

namespace gradus {

/// `graph` for these values of its symbols.
Graph evaluated(const Graph& graph, std::span<const std::int64_t> symbols);

}  // namespace gradus
