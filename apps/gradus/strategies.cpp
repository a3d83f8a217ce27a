/// Strategies of the command.
#include "apps/gradus/strategies.h"

namespace gradus::command {
namespace {

/// Of this process; none: the default device alone.
std::vector<Device> devices_of(const TrainConfig& config) {
  std::vector<Device> devices;
  for (int replica = 0; replica < config.replicas && config.replicas > 1; ++replica) devices.push_back(cpu(replica));
  return devices;
}

}  // namespace

void check_roles(const Cluster& cluster, std::string_view command) {
  require<ConfigError>(cluster.servers() == 0, command, ": ", cluster.source, " names ", cluster.servers(),
                       " parameter servers, but this command trains all ranks in step, without any; leave them out "
                       "(gradus launch without --servers), or write the loop with ParameterServerStrategy");
  require<ConfigError>(cluster.task == TaskType::chief || cluster.task == TaskType::worker, command, ": ",
                       cluster.source, " says that this process is of the task ", name_of(cluster.task),
                       ", which does not train; evaluate a run with gradus eval");
}

std::optional<Strategy> strategy_of(TrainConfig& config, const Cluster& cluster) {
  if (cluster.ranks() > 1 && !config.distribute) config.distribute.emplace();
  const std::vector<Device> devices = devices_of(config);
  if (!config.distribute) {
    if (devices.empty()) return {};
    return MirroredStrategy({.devices = devices});
  }
  const int micro_shards = static_cast<int>(config.distribute->micro_shards);
  if (cluster.ranks() > 1)
    return MultiWorkerMirroredStrategy(cluster, {.micro_shards = micro_shards,
                                                 .devices = devices,
                                                 .shard_optimizer = config.distribute->shard_optimizer,
                                                 .bf16_sums = config.distribute->bf16_sums});
  return MirroredStrategy({.devices = devices.empty() ? std::vector{default_device()} : devices,
                           .micro_shards = micro_shards,
                           .bf16_sums = config.distribute->bf16_sums});
}

}  // namespace gradus::command
