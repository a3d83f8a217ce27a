/// The ranks on which a command works, where a launcher has started several.
#pragma once
#include <optional>
#include <string_view>
#include "apps/gradus/config.h"
#include "gradus/distribute/strategy.h"

namespace gradus::command {

/// The cluster of this process, of workers alone. ConfigError for parameter servers and evaluators, which `command` has
/// no work for.
Cluster workers_for(std::string_view command);
/// The strategy that divides batches: among processes, among shards of one, or none. Several processes without a
/// [distribute] get its defaults in `config`.
std::optional<Strategy> strategy_of(TrainConfig& config, const Cluster& cluster);
/// ConfigError, which names the launcher, if there are several ranks: each would do the same.
void require_one_process(std::string_view command);

}  // namespace gradus::command
