/// Meeting, adding and sharing between processes.
#include "gradus/distribute/worker_group.h"
#include <algorithm>
#include <cstring>
#include <numeric>
#include "gradus/base/error.h"
#include "gradus/base/version.h"
#include "gradus/distribute/ucx.h"

namespace gradus::detail {
namespace {

/// Small sums of one type travel together, up to so many bytes.
constexpr std::int64_t bytes_together = std::int64_t{1} << 20;

std::string fingerprint_of(const Cluster& cluster, std::size_t devices, int micro_shards) {
  return text("multi-worker mirrored, ", cluster.ranks(), " ranks with ", devices, " replicas each, micro_shards ",
              micro_shards);
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

WorkerGroup::WorkerGroup(const Cluster& cluster, std::vector<Device> devices, int micro_shards)
    : ReplicaGroup(std::move(devices), micro_shards, cluster.rank, cluster.ranks()),
      cluster_(cluster),
      meeting_(cluster, {.fingerprint = fingerprint_of(cluster, devices_.size(), micro_shards),
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
}

void WorkerGroup::failed(const std::string& why) noexcept {
  if (!collectives_) return;
  meeting_.fail(why);
  transport_->close(why);
}

/// Sums of one type that are small lie one behind the other in one message.
void WorkerGroup::add_up(std::span<ShardRun::Sum> sums) {
  if (!collectives_) return ReplicaGroup::add_up(sums);
  const ShardRange own = collectives_->own_shards();
  struct Bucket {
    DType type;
    std::vector<ShardRun::Sum*> sums = {};
    std::int64_t bytes = 0;
    std::vector<Ref<Buffer>> parts = {};  // of own shards
    Ref<Buffer> result = {};
    Collective* under_way = nullptr;
  };
  std::vector<Bucket> buckets;
  for (ShardRun::Sum& sum : sums) {
    const std::int64_t bytes = bytes_of(sum.spec);
    const auto fits = [&](const Bucket& bucket) {
      return bucket.type == sum.spec.dtype && bucket.bytes + bytes <= bytes_together;
    };
    auto bucket = std::ranges::find_if(buckets, fits);
    if (bucket == buckets.end()) bucket = buckets.insert(buckets.end(), Bucket{sum.spec.dtype});
    bucket->sums.push_back(&sum);
    bucket->bytes += bytes;
  }
  for (Bucket& bucket : buckets) {
    const bool is_alone = bucket.sums.size() == 1;
    for (int shard = own.begin; shard < own.end; ++shard) {
      const auto part_of = [&](const ShardRun::Sum& sum) -> const Buffer* {
        const auto found = std::ranges::find(sum.parts, shard, &ShardRun::Part::shard);
        return found == sum.parts.end() ? nullptr : found->value.get();
      };
      if (const Buffer* only = is_alone ? part_of(*bucket.sums[0]) : nullptr) {
        bucket.parts.emplace_back(const_cast<Buffer*>(only));
        continue;
      }
      Ref<Buffer> joined = Buffer::allocate(bucket.bytes);
      std::int64_t at = 0;
      for (const ShardRun::Sum* sum : bucket.sums) {
        const auto size = static_cast<std::size_t>(bytes_of(sum->spec));
        if (const Buffer* part = part_of(*sum)) std::memcpy(joined->data<std::byte>() + at, part->host(), size);
        else std::memset(joined->data<std::byte>() + at, 0, size);
        at += bytes_of(sum->spec);
      }
      bucket.parts.push_back(std::move(joined));
    }
    bucket.result = Buffer::allocate(bucket.bytes, "a sum over shards");
    std::vector<const std::byte*> values;
    for (const Ref<Buffer>& part : bucket.parts) values.push_back(static_cast<const std::byte*>(part->host()));
    bucket.under_way = collectives_->start_all_reduce(
        bucket.type, values, {bucket.result->data<std::byte>(), static_cast<std::size_t>(bucket.bytes)});
  }
  for (Bucket& bucket : buckets) {
    collectives_->finish(bucket.under_way);
    std::int64_t at = 0;
    for (ShardRun::Sum* sum : bucket.sums) {
      const std::int64_t bytes = bytes_of(sum->spec);
      if (bucket.sums.size() == 1) {
        sum->result = bucket.result;
      } else {
        sum->result = Buffer::allocate(bytes, "a sum over shards");
        std::memcpy(sum->result->data(), bucket.result->data<std::byte>() + at, static_cast<std::size_t>(bytes));
      }
      at += bytes;
    }
  }
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
