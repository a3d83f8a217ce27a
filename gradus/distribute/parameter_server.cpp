/// The strategy, and what the process of a server does in its place.
#include "gradus/distribute/parameter_server.h"
#include <cstdlib>
#include "gradus/base/ranges.h"
#include "gradus/distribute/parameter_server_group.h"
#include "gradus/ops/constant.h"

namespace gradus {
namespace {

using namespace std::chrono_literals;

/// Returns when the training has ended as it should.
void serve(const Cluster& cluster, std::uint64_t lag) {
  ParameterStore store;
  const auto server = grpc_server(
      Address::parse(cluster.parameter_servers[static_cast<std::size_t>(cluster.rank)], "Cluster: `parameter_servers`"),
      cluster.interface, cluster.credentials, store, text("parameter server ", cluster.rank, " cannot serve"));
  StepMember member(grpc_client(cluster.meeting(), cluster.credentials, "rank 0"), cluster,
                    static_cast<std::size_t>(cluster.ranks() + cluster.rank), drawn_name());
  member.join(detail::ParameterServerGroup::fingerprint_of(cluster, lag));
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> why;
  bool is_well = false;
  member.start_beating([&](const std::string& reason, bool in_order) {
    const std::lock_guard lock(mutex);
    why = reason;
    is_well = in_order;
    changed.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return why.has_value(); });
  }
  server->stop(1s);
  require<Unavailable>(is_well, "parameter server ", cluster.rank, ": ", *why);
}

std::shared_ptr<detail::ParameterServerGroup> group_of(const Cluster& cluster, ParameterServerOptions options) {
  check_options("ParameterServerStrategy", options);
  cluster.check();
  require(cluster.servers() > 0,
          "ParameterServerStrategy: the cluster has no parameter servers: name their addresses in `parameter_servers` "
          "(`ps` in TF_CONFIG), or take MultiWorkerMirroredStrategy, which needs none");
  require(cluster.task != TaskType::evaluator,
          "ParameterServerStrategy: an evaluator stands beside the cluster: restore checkpoints in it, and evaluate "
          "without the strategy");
  if (cluster.task == TaskType::parameter_server) {
    serve(cluster, static_cast<std::uint64_t>(std::min(options.max_staleness, cluster.ranks() - 1)));
    std::exit(0);
  }
  return std::make_shared<detail::ParameterServerGroup>(cluster, options.max_staleness);
}

}  // namespace

ParameterServerStrategy::ParameterServerStrategy(const Cluster& cluster, ParameterServerOptions options)
    : ParameterServerStrategy(group_of(cluster, options)) {}

ParameterServerStrategy::ParameterServerStrategy(std::shared_ptr<detail::ParameterServerGroup> group)
    : Strategy(group), servers_(std::move(group)) {}

int ParameterServerStrategy::rank() const { return own_rank(); }

void ParameterServerStrategy::schedule_step(const detail::StepIdentity& identity, In batch,
                                            const StaticArguments& statics, const Body& body) const {
  servers_->schedule(identity, batch, statics, body);
}

Loss ParameterServerStrategy::join() const {
  const StepLoss all = servers_->join();
  if (!all.has_loss) return {};
  return Loss::of_sums(full({}, all.sum), full({}, all.weight));
}

}  // namespace gradus
