/// Tiers: which runs of a graph are interpreted, and from which one on it has code. An interpreter begins at once, and
/// code has to be generated before it runs. Every choice is made here, for lazy programs, functions and all devices:
/// the processor interprets for a plugin, whose code takes longer to make. Both tiers of a device's program give the
/// same bits. All choices are deterministic.
#pragma once
#include <cstdint>
#include <span>
#include "gradus/graph/graph.h"

namespace gradus {

/// True if one interpreted run of `graph` should end before code for it could be generated and run.
bool is_interpreted_sooner(const Graph& graph, std::span<const std::int64_t> symbols = {});

/// True if a lazy structure that was seen `sights` times gets code now. `between`: the number of all runs since it was
/// seen last.
bool is_worth_compiling(const Graph& graph, int sights, std::int64_t between);

/// The number of graphs that differ in numbers alone before one program with symbols serves them.
std::size_t graphs_before_opening(const Graph& graph);
/// The number of interpreted runs of that program before it gets code.
int runs_of_open_form(const Graph& open, std::span<const std::int64_t> symbols);

/// The number of interpreted runs of a function's program before it gets code, if it may be called a few times only;
/// else the second run has code.
int runs_before_code(const Graph& graph, std::span<const std::int64_t> symbols);

}  // namespace gradus
