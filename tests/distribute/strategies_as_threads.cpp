#include "tests/distribute/strategies_as_threads.h"
#include <thread>
#include "gradus/distribute/mirrored/worker_group.h"
#include "gradus/ops/random_state.h"

namespace gradus {
namespace {

struct StrategyOfGroup : Strategy {
  explicit StrategyOfGroup(std::shared_ptr<detail::ReplicaGroup> group) : Strategy(std::move(group)) {}
};

Cluster cluster_of(const RanksOfTest& ranks, int rank) {
  Cluster cluster = Cluster::simulated(ranks.ranks);
  cluster.rank = rank;
  cluster.timeout = ranks.timeout;
  cluster.heartbeat = ranks.heartbeat;
  return cluster;
}

}  // namespace

std::vector<std::string> run_on_ranks(const RanksOfTest& ranks,
                                      const std::function<void(const Strategy& strategy, int rank)>& body) {
  const auto network = in_process_network();
  const Cluster first = cluster_of(ranks, 0);
  const ShardOptions options{.divides_state = ranks.shard_optimizer};
  const MeetingTerms terms =
      Meeting::terms(first, detail::WorkerGroup::introduction(first, 1, ranks.micro_shards, options));
  const auto desk = ranks.make_desk ? ranks.make_desk(terms) : std::make_shared<MeetingDesk>(terms);
  const auto witness = std::make_shared<CommitWitness>(ranks.ranks);
  std::vector<std::string> problems(static_cast<std::size_t>(ranks.ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks.ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::uint64_t random = random_state_of(5);
      const SeedScope seeds(random);
      try {
        std::unique_ptr<Transport> transport = in_process_transport(network);
        if (ranks.wrap) transport = ranks.wrap(rank, std::move(transport));
        const StrategyOfGroup strategy(
            std::make_shared<detail::WorkerGroup>(cluster_of(ranks, rank), std::vector{cpu(0)}, ranks.micro_shards,
                                                  options, detail::GroupMeans{desk, witness, std::move(transport)}));
        body(strategy, rank);
      } catch (const std::exception& error) { problems[static_cast<std::size_t>(rank)] = error.what(); }
    });
  for (std::thread& thread : threads) thread.join();
  return problems;
}

}  // namespace gradus
