/// Graphs of a step on the shards of a batch (ops/shards.h). Values that differ from shard to shard are computed once
/// for each shard, values that are the same for all once. Between them are the sums over shards.
#pragma once
#include "gradus/backend/backend.h"

namespace gradus {

/// True if a value of `graph` differs from shard to shard, is made of those of all shards, or may be divided.
bool is_of_shards(const Graph& graph);

/// `graph` for a batch that is one shard as a whole.
Graph as_one_shard(const Graph& graph);

/// Compiles `graph` for these shards. InvalidArgument if a value names a device: the strategy decides where shards are
/// computed.
std::shared_ptr<const Executable> compile_sharded(Graph graph, const ShardRun& shards, const CompileOptions& options);

}  // namespace gradus
