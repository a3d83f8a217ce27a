/// Inputs and outputs of a rank's exchanges with others in the midst of a program of shards.
#pragma once
#include <array>
#include "gradus/backend/parts/divided_state.h"
#include "gradus/backend/shard_run.h"

namespace gradus {

/// This rank's parts of inputs that are divided, or to be. One that is cut elsewhere is made whole first. `cuts`: of
/// the inputs of `graph`; empty: all are whole.
std::vector<Ref<Buffer>> own_inputs(ShardRun& run, const Graph& graph, std::span<const Cuts> cuts,
                                    std::span<const Ref<Buffer>> inputs);

/// The memory for an output with these cuts, if the caller gives `place`: this rank's part of it; null: new memory.
Ref<Buffer> own_output(const Cuts& cuts, const Ref<Buffer>& place);

/// Values of all shards, to be contiguous, or that of the shard at `root` among those that have rows; -1: all.
/// `elements`: of a value on shards of either length; `own`: those of this process's shards, by number.
ShardRun::Gathered values_of_shards(const ShardRun& run, DType dtype, const std::array<std::int64_t, 2>& elements,
                                    int root, std::vector<ShardRun::Part> own);

}  // namespace gradus
