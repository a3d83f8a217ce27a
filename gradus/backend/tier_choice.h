/// Which tier gives a first result sooner: code has to be generated before it runs, the interpreter begins at once.
#pragma once
#include <cstdint>
#include <span>
#include "gradus/graph/graph.h"

namespace gradus {

/// Whether one run of `graph` is expected to be over before code for it would be there and have run. Deterministic.
bool is_interpreted_sooner(const Graph& graph, std::span<const std::int64_t> symbols = {});

}  // namespace gradus
