/// The strategy, and the loop of a server process in its place.
#include "gradus/distribute/parameter_server.h"
#include <cstdlib>
#include <future>
#include "gradus/base/notice.h"
#include "gradus/base/ranges.h"
#include "gradus/distribute/parameter_servers/parameter_server_group.h"
#include "gradus/ops/constant.h"

namespace gradus {
namespace {

using namespace std::chrono_literals;

void check(const Cluster& cluster, const ParameterServerOptions& options) {
  check_options("ParameterServerStrategy", options);
  cluster.check();
  require(cluster.servers() > 0,
          "ParameterServerStrategy: the cluster has no parameter servers: name their addresses in `parameter_servers` "
          "(`ps` in TF_CONFIG), or take MultiWorkerMirroredStrategy, which needs none");
  require(cluster.task != TaskType::evaluator,
          "ParameterServerStrategy: an evaluator stands beside the cluster: restore checkpoints in it, and evaluate "
          "without the strategy");
  if (!cluster.in_process) notice(text("gradus: ", cluster.describe(), "; values travel by gRPC\n"));
}

std::shared_ptr<detail::ParameterServerGroup> group_of(const Cluster& cluster, const ParameterServerOptions& options) {
  if (cluster.task == TaskType::parameter_server) {
    ParameterServerStrategy::serve(cluster, options);
    std::exit(0);
  }
  check(cluster, options);
  return std::make_shared<detail::ParameterServerGroup>(cluster, options);
}

}  // namespace

void ParameterServerStrategy::serve(const Cluster& given, const ParameterServerOptions& options) {
  check(given, options);
  require(given.task == TaskType::parameter_server,
          "ParameterServerStrategy: serve is for the processes that are parameter servers; this one is none");
  const Cluster cluster = given.settled();
  ParameterStore store(detail::ParameterServerGroup::options_of_store(options, cluster.rank));
  const auto server = grpc_server(
      Address::parse(cluster.parameter_servers[static_cast<std::size_t>(cluster.rank)], "Cluster: `parameter_servers`"),
      cluster.interface, cluster.credentials, store, text("parameter server ", cluster.rank, " cannot serve"));
  std::promise<void> ended;
  StepMember member(grpc_client(cluster.meeting(), cluster.credentials, "rank 0"), cluster,
                    static_cast<std::size_t>(cluster.ranks() + cluster.rank), drawn_name());
  member.join(detail::ParameterServerGroup::fingerprint_of(cluster, options.max_staleness));
  member.start_beating([&](const std::exception_ptr& why) { ended.set_exception(why); });
  try {
    ended.get_future().get();      // no deadline: the heartbeat, which has one, ends it
  } catch (const TrainingOver&) {  // as it should
  } catch (const std::exception& error) {
    throw Unavailable(text("parameter server ", cluster.rank, ": ", error.what()));
  }
  server->stop(1s);
}

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
