/// The interpreter: the tier without code generation. Every value is computed by itself, its formula interpreted block
/// by block. It gives the same bits as generated code, and is ready at once.
#pragma once
#include <span>
#include "gradus/backend/cpu/run/program.h"

namespace gradus::interpreter {

/// Per step the thunks of its loops, if it has some. Each step has one member. Takes slots for shared
/// scratch from out.slots.
std::vector<std::vector<Thunk>> lower_loops(std::shared_ptr<const Graph> graph, std::span<const Step> steps,
                                            Lowered& out);

// One file each: the thunk that computes `value` for given symbols.
using Symbols = std::span<const std::int64_t>;

/// Formulas, and views, indexes and constants that have to stand in memory.
BoundThunk bind_elementwise(const Graph& graph, int value, Symbols symbols);
void run_elementwise(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);

// Reductions are two thunks: where few elements come of many, the first yields results of blocks in slot `partials`,
// which the second combines; elsewhere the second has nothing to do.
/// Along the last axis.
BoundThunk bind_row_reduction(const Graph& graph, int value, int partials, Symbols symbols);
void run_row_reduction(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_row_combination(const Graph& graph, int value, int partials, Symbols symbols);
void run_row_combination(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
/// Along any other axis.
BoundThunk bind_column_reduction(const Graph& graph, int value, int partials, Symbols symbols);
void run_column_reduction(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
BoundThunk bind_column_combination(const Graph& graph, int value, int partials, Symbols symbols);
void run_column_combination(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);

}  // namespace gradus::interpreter
