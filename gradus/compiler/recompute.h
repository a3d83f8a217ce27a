/// The pass `recompute`: values that live long are computed again for their late readers until a byte budget is kept.
/// No bit changes: a copy is the same op on the same operands.
///
/// Where most is alive, one of the values that are only kept there for later is split: its late readers get a copy that
/// is computed just before the first of them, from what is alive by then, from inputs, or from copies of what is not.
/// Repeated, this finds what is cheap first (formulas and reductions, which also fuse into their readers), then
/// products, down to checkpoints from which everything between is computed again.
#pragma once
#include <functional>
#include "gradus/compiler/late_copies.h"

namespace gradus {

/// What a program of this graph would do, and the memory that it would take. `copies` as for fuse().
using MemoryPlanner = std::function<PlannedMemory(const Graph& graph, std::span<const int> copies)>;

struct Recomputed {
  Graph graph;
  PlannedMemory use;
  std::int64_t bytes = 0;  // of stored values that are computed again
};

/// ResourceExhausted if nothing fits; it names the smallest budget that works, `known` bytes if nothing needs less.
/// What is found depends on the budget in one way only: the search, which does not look at it, ends when it is kept.
Recomputed recompute(const Graph& graph, std::int64_t max_bytes, std::int64_t known, const MemoryPlanner& planner);

}  // namespace gradus
