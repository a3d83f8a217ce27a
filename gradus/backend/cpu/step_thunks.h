/// The thunks of steps. One place decides for each kind of step, so a plan of memory cannot disagree with the program.
#pragma once
#include <memory>
#include <span>
#include "gradus/backend/cpu/run/program.h"
#include "gradus/graph/known_formulas.h"

namespace gradus {

/// The thunks of all steps, in order: loops from the tier, calls from the registry of kernels, branches and loops as
/// programs of their own.
Lowered lower(const std::shared_ptr<const Graph>& graph, std::span<const Step> steps, const CompileOptions& options);

/// The same thunks and slots without code, for options.symbols: bytes moved, operations and memory, for a team of any
/// size. No thunk can be run.
Lowered outline(const Graph& graph, std::span<const Step> steps, const CompileOptions& options,
                KnownFormulas& formulas);

}  // namespace gradus
