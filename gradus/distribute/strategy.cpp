/// The strategies of one process.
#include "gradus/distribute/strategy.h"
#include "gradus/backend/divided_value.h"
#include "gradus/base/ranges.h"
#include "gradus/distribute/mirrored/replica_group.h"
#include "gradus/distribute/mirrored/worker_group.h"
#include "gradus/graph/context.h"

namespace gradus {
namespace {

/// Adds as its owner says.
class OwnSums final : public ShardExchange {
 public:
  explicit OwnSums(Reducer all_reduce) : all_reduce_(std::move(all_reduce)) {
    require(static_cast<bool>(all_reduce_), "Strategy: the function that adds is empty");
  }
  void add_up(std::span<ShardRun::Sum> sums, std::int64_t step) override {
    const OutsideOfCalls outside;  // a trace may ask for a sum, on which the C++ of a step branches
    for (ShardRun::Sum& sum : sums) {
      std::vector<Tensor> parts;
      for (const ShardRun::Part& part : sum.parts) parts.push_back(Tensor::of_buffer(sum.spec, part.value));
      const std::vector<Tensor> added =
          all_reduce_({std::string(sum.name), sum.spec.shape, sum.spec.dtype, step}, parts);
      require(added.size() == parts.size(), "Strategy: the function that adds gave ", added.size(), " tensors for ",
              parts.size(), " replicas");
      for (const Tensor& each : added)
        require(each.spec() == sum.spec, "Strategy: the function that adds gave ", each.spec(), ", expected ",
                sum.spec);
      sum.result = added[0].host_buffer();
    }
  }

 private:
  const Reducer all_reduce_;
};

std::vector<Device> or_all(std::vector<Device> devices) {
  if (!devices.empty()) return devices;
  devices = gradus::devices(DeviceKind::gpu);
  return devices.empty() ? std::vector{default_device()} : devices;
}

}  // namespace

void detail::StepResults::give_masks(std::size_t count) const {
  for (std::size_t k = count; k < tensors.size(); ++k)
    if (const auto& per_replica = tensors[k - count].per_replica; per_replica && tensors[k].per_replica)
      per_replica->give_masks(*tensors[k].per_replica);
}

Strategy::Strategy(std::vector<Device> devices, Reducer all_reduce)
    : group_(std::make_shared<detail::ReplicaGroup>(std::move(devices), 0, ShardOptions(), 0, 1,
                                                    std::make_unique<OwnSums>(std::move(all_reduce)))) {}
Strategy::Strategy(std::vector<Device> devices, ReducerOfParts all_reduce)
    : Strategy(std::move(devices),
               all_reduce ? Reducer([add = std::move(all_reduce)](const ReplicaSum&, const std::vector<Tensor>& parts) {
                 return add(parts);
               })
                          : Reducer()) {}

int Strategy::num_replicas_in_sync() const { return group_->replicas(); }
int Strategy::micro_shards() const { return group_->shards(); }
int Strategy::own_rank() const { return group_->rank(); }
bool Strategy::divides_state() const { return group_->divides_state(); }
int Strategy::ranks() const { return group_->ranks(); }
bool Strategy::any(bool mine) const { return group_->any(mine); }
void Strategy::check_same(std::uint64_t value, const std::string& what) const { group_->check_same(value, what); }
void Strategy::check_same(std::span<const NamedNumber> numbers, std::string_view when, std::string_view remedy) const {
  if (ranks() > 1) group_->check_same(numbers, when, remedy);
}
void Strategy::check_variables(const Variables& variables, const std::string& when) const {
  if (!group_->keeps_variables()) return;
  std::vector<ShardRun::Common> all;
  for (const Variable& each : variables) {
    const Tensor value = each.value();
    all.push_back({text("Variable ", printable(each.name(), true),
                        " (what assigns it between steps, such as a callback, does so on every rank)"),
                   hash_among_ranks(value.observed(), bytes_of(value.spec()))});
  }
  group_->check_same(all, when);
}
bool Strategy::has_micro_shards() const { return group_->has_micro_shards(); }
void Strategy::check_data(const Pipeline& batches) const { group_->check_data(batches); }
Pipeline Strategy::distributed(const Pipeline& batches, bool by_hand) const {
  return group_->distributed(batches, by_hand);
}
void Strategy::report_failure(const std::string& why) const noexcept { group_->report_failure(why); }

detail::StepResults Strategy::run_step(const detail::StepIdentity& identity, In global, StaticArguments statics,
                                       const Body& body) const {
  return group_->run(identity, global, std::move(statics), body);
}

namespace {

/// The value of a variable; if it is divided, the whole, from the parts that `group` knows.
Tensor whole_value(detail::ReplicaGroup& group, const Variable& variable) {
  const Tensor value = variable.value();
  const DividedValue* const divided = DividedValue::of(value.observed());
  if (!divided) return value;
  require(divided->cuts().size() == static_cast<std::size_t>(group.ranks()) + 1, "strategy.gather: variable ",
          variable.name(), " is divided among ", divided->cuts().size() - 1, " ranks, and this strategy has ",
          group.ranks(), "; gather it by the strategy that has trained it");
  ShardRun::Gathered whole{value.dtype(), divided->cuts(), Buffer::on_host(divided->part())};
  group.exchange().gather({&whole, 1});
  return Tensor::of_buffer(value.spec(), std::move(whole.result));
}

}  // namespace

void Strategy::gather(const Variables& variables) const {
  require(!Context::current(), "strategy.gather within a traced function or a step: call it between steps");
  for (Variable& variable : variables)
    if (const Tensor whole = whole_value(*group_, variable); whole.node() != variable.value().node())
      variable.assign(whole);
}

Tensor Strategy::value_on_first_rank(const Variable& variable) const {
  const Tensor whole = whole_value(*group_, variable);
  return group_->rank() == 0 ? whole : Tensor();
}

Explanation Strategy::explain_step(const detail::StepIdentity& identity) const { return group_->explain(identity); }

DefaultStrategy::DefaultStrategy()
    : Strategy(std::make_shared<detail::ReplicaGroup>(std::vector{default_device()}, 0)) {}

MirroredStrategy::MirroredStrategy(MirroredOptions options)
    : Strategy([&] {
        check_options("MirroredStrategy", options);
        return std::make_shared<detail::ReplicaGroup>(or_all(std::move(options.devices)), options.micro_shards,
                                                      ShardOptions{.sums_in_bf16 = options.bf16_sums});
      }()) {}

namespace {

std::shared_ptr<detail::ReplicaGroup> group_of(const Cluster& cluster, MultiWorkerOptions options) {
  check_options("MultiWorkerMirroredStrategy", options);
  cluster.check();
  if (!cluster.in_process)
    return std::make_shared<detail::WorkerGroup>(cluster, or_all(std::move(options.devices)), options.micro_shards,
                                                 ShardOptions{options.shard_optimizer, options.bf16_sums});
  require(options.devices.empty(), "MultiWorkerMirroredStrategy: a simulated cluster has devices of its own, the ",
          "logical devices of the processor; leave .devices out");
  std::vector<Device> devices;
  for (int rank = 0; rank < cluster.ranks(); ++rank) devices.push_back(cpu(rank));
  return std::make_shared<detail::ReplicaGroup>(std::move(devices), options.micro_shards,
                                                ShardOptions{.sums_in_bf16 = options.bf16_sums});
}

}  // namespace

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(const Cluster& cluster, MultiWorkerOptions options)
    : Strategy(group_of(cluster, std::move(options))) {}

int MultiWorkerMirroredStrategy::rank() const { return own_rank(); }

}  // namespace gradus
