/// Graphs of a step on the shards of a batch (ops/shards.h): what differs from shard to shard runs once for each, what
/// is the same for all once, and between them stand the sums.
#pragma once
#include "gradus/backend/backend.h"

namespace gradus {

/// Whether a value of `graph` differs from shard to shard, or is of all of them.
bool is_of_shards(const Graph& graph);

/// The same where the whole batch is one shard.
Graph as_one_shard(const Graph& graph);

/// What runs `graph` on the shards of ShardRun::current(). InvalidArgument if a value names a device: where shards are
/// computed is said by the strategy.
std::shared_ptr<const Executable> compile_sharded(Graph graph, const CompileOptions& options);

}  // namespace gradus
