/// On what a configuration is trained: one device, several of this process, several processes.
#pragma once
#include <optional>
#include <string_view>
#include "apps/gradus/config.h"
#include "gradus/distribute/strategy.h"

namespace gradus::command {

/// ConfigError for roles that `command` has no work for.
void check_roles(const Cluster& cluster, std::string_view command);

/// Several processes, where the environment says so; else the shards of one, if the configuration has any. `config`
/// gets the table [distribute] that several processes need.
std::optional<Strategy> strategy_of(TrainConfig& config, const Cluster& cluster);

}  // namespace gradus::command
