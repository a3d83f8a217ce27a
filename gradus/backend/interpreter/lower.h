/// The tier without code generation: every value is computed by itself, its formula interpreted block by block. The
/// same bits as generated code, ready at once.
#pragma once
#include <span>
#include "gradus/backend/program.h"

namespace gradus::interpreter {

/// Per step its thunks; none for a step of another kind than loops. Each step has one member.
std::vector<std::vector<Thunk>> lower_loops(std::shared_ptr<const Graph> graph, std::span<const Step> steps);

// One file each: what computes `value` for given symbols.

/// Formulas, and views, indexes and constants that have to stand in memory.
BoundThunk bind_elementwise(const Graph& graph, int value, std::span<const std::int64_t> symbols);
void run_elementwise(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
/// Along the last axis.
BoundThunk bind_row_reduction(const Graph& graph, int value, std::span<const std::int64_t> symbols);
void run_row_reduction(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);
/// Along any other axis.
BoundThunk bind_column_reduction(const Graph& graph, int value, std::span<const std::int64_t> symbols);
void run_column_reduction(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);

}  // namespace gradus::interpreter
