/// The choice of the tier that gives a first result sooner: code has to be generated before it runs, the interpreter
/// begins at once.
#pragma once
#include <cstdint>
#include <span>
#include "gradus/graph/graph.h"

namespace gradus {

/// True if one interpreted run of `graph` should end before code for it could be generated and run. Deterministic.
bool is_interpreted_sooner(const Graph& graph, std::span<const std::int64_t> symbols = {});

/// How many runs of the interpreter take about as long as generating code does, at least 1. Deterministic.
double runs_that_pay(const Graph& graph, std::span<const std::int64_t> symbols = {});

}  // namespace gradus
