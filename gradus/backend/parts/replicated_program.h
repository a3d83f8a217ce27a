/// Steps on the shards of a batch as one executable that all devices of a strategy run together
/// (replicated_graph.h). Sums are made by the devices, and Variables stay on them, a copy on each.
#pragma once
#include <string>
#include "gradus/backend/backend.h"
#include "gradus/backend/shard_run.h"

namespace gradus {

/// Why programs for these shards cannot be one executable on all devices; empty: they can.
std::string why_not_replicated(const ShardRun& run);
/// The note that explain() shows for a program on each device, if they are no processors.
std::string note_of_host_sums(const ShardRun& run, const std::string& why);

/// Compiles `graph` for the shards of `shards`, for which that is possible.
std::shared_ptr<const Executable> compile_replicated(Graph graph, const ShardRun& shards,
                                                     const CompileOptions& options);

}  // namespace gradus
