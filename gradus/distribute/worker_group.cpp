/// Meeting, adding and sharing between processes.
#include "gradus/distribute/worker_group.h"
#include <algorithm>
#include <cstring>
#include <numeric>
#include "gradus/base/error.h"
#include "gradus/base/version.h"
#include "gradus/distribute/gathered_parts.h"
#include "gradus/distribute/ucx.h"

namespace gradus::detail {
namespace {

std::string fingerprint_of(const Cluster& cluster, std::size_t devices, int micro_shards, const ShardOptions& options) {
  return text("multi-worker mirrored, ", cluster.ranks(), " ranks with ", devices, " replicas each, micro_shards ",
              micro_shards, options.divides_state ? ", shard_optimizer" : "",
              options.sums_in_bf16 ? ", bf16_sums" : "");
}

std::unique_ptr<Transport> joined(Meeting& meeting, const Cluster& cluster) {
  UcxChoice choice{.timeout = cluster.timeout};
  if (meeting.is_on_one_host()) choice.transports = "sm,self";
  else choice.devices = cluster.interface;
  auto transport = ucx_transport(choice);
  const std::vector<std::string> addresses = meeting.share("addresses 1", transport->open());
  Group group{.rank = cluster.rank};
  for (std::size_t rank = 0; rank < addresses.size(); ++rank)
    group.members.push_back({meeting.names()[rank], addresses[rank]});
  transport->join(std::move(group));
  return transport;
}

}  // namespace

WorkerGroup::WorkerGroup(const Cluster& cluster, std::vector<Device> devices, int micro_shards, ShardOptions options)
    : ReplicaGroup(std::move(devices), micro_shards,
                   {options.divides_state && cluster.ranks() > 1, options.sums_in_bf16}, cluster.rank, cluster.ranks()),
      cluster_(cluster),
      meeting_(cluster, {.fingerprint = fingerprint_of(cluster, devices_.size(), micro_shards, options),
                         .version = std::string(version())}) {
  if (cluster.ranks() == 1) return;
  transport_ = joined(meeting_, cluster_);
  collectives_ = std::make_unique<Collectives>(*transport_, shards(), cluster_.timeout);
  meeting_.on_failure([transport = std::weak_ptr(transport_)](const std::string& why) {
    if (const auto still = transport.lock()) still->fail(why);
  });
}

/// What ends by an exception, between two steps too, has not left in order: then the others are told at once.
WorkerGroup::~WorkerGroup() {
  if (is_whole_ && std::uncaught_exceptions() == exceptions_before_) meeting_.leave();
}

void WorkerGroup::begin() {
  if (!collectives_) return;
  meeting_.check();
  require<Unavailable>(is_whole_,
                       "strategy.run: this strategy has failed in a step before; the group has to form again: "
                       "make a strategy anew on every rank");
  is_whole_ = false;
  meeting_.set_doing(text("step ", step_));
  collectives_->begin_step(step_++);
  ++traffic_.steps;
}

void WorkerGroup::failed(const std::string& why) noexcept {
  if (!collectives_) return;
  meeting_.fail(why);
  transport_->close(why);  // touches no memory of sums any more
  buckets_.reset();
}

void WorkerGroup::expect(std::span<ShardRun::Sum> sums) { buckets_.emplace(*collectives_, sums); }
void WorkerGroup::is_there(std::size_t sum) { buckets_->is_there(sum); }
void WorkerGroup::drive() {
  if (buckets_) buckets_->drive();
}

void WorkerGroup::add_up(std::span<ShardRun::Sum> sums) {
  if (!collectives_) return ReplicaGroup::add_up(sums);
  if (!buckets_) expect(sums);
  buckets_->finish(traffic_);
  buckets_.reset();
}

Explanation WorkerGroup::explain(const StepIdentity& identity) {
  Explanation explanation = ReplicaGroup::explain(identity);
  if (traffic_.buckets == 0) return explanation;
  const auto steps = static_cast<double>(traffic_.steps);
  explanation.exchanges = static_cast<double>(traffic_.buckets) / steps;
  explanation.exchanged_bytes = static_cast<double>(traffic_.bytes) / steps;
  explanation.exchange_seconds = traffic_.seconds / steps;
  explanation.exchange_wait_seconds = traffic_.waited_seconds / steps;
  return explanation;
}

std::vector<std::uint64_t> WorkerGroup::of_all(std::uint64_t mine) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks_));
  all[static_cast<std::size_t>(rank_)] = mine;
  Cuts cuts(all.size() + 1);
  std::iota(cuts.begin(), cuts.end(), 0);
  if (collectives_) collectives_->all_gather(u64, cuts, std::as_writable_bytes(std::span(all)));
  return all;
}

bool WorkerGroup::any(bool mine) {
  return std::ranges::any_of(of_all(mine), [](std::uint64_t each) { return each != 0; });
}

void WorkerGroup::check_same(std::uint64_t value, const std::string& what) {
  const std::vector<std::uint64_t> all = of_all(value);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    require(all[rank] == all[0], what, " (", meeting_.names()[rank], " differs from ", meeting_.names()[0], ")");
}

void WorkerGroup::gather(std::span<ShardRun::Gathered> values) {
  if (!collectives_) return ReplicaGroup::gather(values);
  for (const ShardRun::Gathered& value : values) traffic_.bytes += value.cuts.back() * size_of(value.dtype);
  gather_parts(*collectives_, values);
}

void WorkerGroup::share(std::span<ShardRun::Part> parts, std::span<const std::int64_t> bytes) {
  if (!collectives_) return;
  Cuts cuts(static_cast<std::size_t>(ranks_) + 1, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int rank = replica_of(parts[i].shard) / own_replicas();
    cuts[static_cast<std::size_t>(rank) + 1] += bytes[i];
  }
  std::partial_sum(cuts.begin(), cuts.end(), cuts.begin());
  std::vector<std::byte> all(static_cast<std::size_t>(cuts.back()));
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); at += bytes[i++])
    if (parts[i].value) std::memcpy(all.data() + at, parts[i].value->host(), static_cast<std::size_t>(bytes[i]));
  collectives_->all_gather(u8, cuts, all);
  at = 0;
  for (std::size_t i = 0; i < parts.size(); at += bytes[i++]) {
    if (parts[i].value) continue;
    parts[i].value = Buffer::allocate(bytes[i]);
    std::memcpy(parts[i].value->data(), all.data() + at, static_cast<std::size_t>(bytes[i]));
  }
}

}  // namespace gradus::detail
