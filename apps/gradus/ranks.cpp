#include "apps/gradus/ranks.h"

namespace gradus::command {
namespace {

/// Logical devices of this process, among which its shards are divided; none: the default device alone.
std::vector<Device> devices_of(const TrainConfig& config) {
  require<ConfigError>(config.replicas == 1 || config.device.empty(), "train.replicas: ", config.replicas,
                       " logical devices of the processor, but train.device is ", config.device,
                       "; expected one of the two");
  std::vector<Device> devices;
  for (int replica = 0; replica < config.replicas && config.replicas > 1; ++replica) devices.push_back(cpu(replica));
  return devices;
}

}  // namespace

Cluster workers_for(std::string_view command) {
  Cluster cluster = Cluster::from_environment();
  require<ConfigError>(cluster.servers() == 0, command, ": ", cluster.source, " names ", cluster.servers(),
                       " parameter servers, but this command has all ranks in step, without any; leave them out "
                       "(gradus launch without --servers), or write the loop with ParameterServerStrategy");
  require<ConfigError>(cluster.task == TaskType::chief || cluster.task == TaskType::worker, command, ": ",
                       cluster.source, " says that this process is of the task ", name_of(cluster.task),
                       ", which has no part in it; evaluate a run with gradus eval in a process of its own, without ",
                       cluster.source);
  return cluster;
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

void require_one_process(std::string_view command) {
  const Cluster cluster = Cluster::from_environment();
  require<ConfigError>(cluster.ranks() == 1, command, ": ", cluster.source, " names ", cluster.ranks(),
                       " ranks, and each would do all of it; start one process (train, eval and predict work on "
                       "several)");
}

}  // namespace gradus::command
