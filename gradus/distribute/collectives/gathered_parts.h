/// Values that are divided among ranks, made whole on all of them.
#pragma once
#include "gradus/backend/shard_run.h"
#include "gradus/distribute/collectives/collectives.h"

namespace gradus::detail {

/// Makes the results of all of them: small ones travel together.
void gather_parts(Collectives& collectives, std::span<ShardRun::Gathered> values);

}  // namespace gradus::detail
