#include "apps/gradus/ranks.h"

namespace gradus::command {

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
  if (!config.distribute) return {};
  const int micro_shards = static_cast<int>(config.distribute->micro_shards);
  if (cluster.ranks() > 1)
    return MultiWorkerMirroredStrategy(cluster, {.micro_shards = micro_shards,
                                                 .shard_optimizer = config.distribute->shard_optimizer,
                                                 .bf16_sums = config.distribute->bf16_sums});
  return MirroredStrategy(
      {.devices = {default_device()}, .micro_shards = micro_shards, .bf16_sums = config.distribute->bf16_sums});
}

void require_one_process(std::string_view command) {
  const Cluster cluster = Cluster::from_environment();
  require<ConfigError>(cluster.ranks() == 1, command, ": ", cluster.source, " names ", cluster.ranks(),
                       " ranks, and each would do all of it; start one process (train, eval and predict work on "
                       "several)");
}

}  // namespace gradus::command
