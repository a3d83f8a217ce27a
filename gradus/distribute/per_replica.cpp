/// Joining and adding the values of shards.
#include "gradus/distribute/per_replica.h"
#include <ostream>
#include "gradus/distribute/mirrored/replica_group.h"
#include "gradus/graph/mask.h"
#include "gradus/ops/masked_rows.h"
#include "gradus/ops/shape.h"

namespace gradus {

PerReplica<Tensor>::PerReplica(Tensors shards, std::vector<int> numbers, std::vector<int> replicas, int all)
    : shards_(std::move(shards)), numbers_(std::move(numbers)), replicas_(std::move(replicas)), all_(all) {}

PerReplica<Tensor>::PerReplica(const Tensor& common, std::size_t replicas)
    : shards_{common}, numbers_{0}, replicas_(replicas) {}

Tensor PerReplica<Tensor>::joined(int from, int to) const {
  Tensors chosen;
  for (std::size_t s = 0; s < shards_.size(); ++s)
    if (numbers_[s] >= from && numbers_[s] < to) chosen.push_back(shards_[s]);
  if (chosen.size() == 1) return chosen[0];
  const Tensor& like = shards_.front();
  if (chosen.empty()) {  // a replica without rows
    if (like.shape().rank() == 0) return reshape(like, {1}).rows(0, 0);
    return masked_rows(like, 0, 0);
  }
  return like.shape().rank() == 0 ? stack(chosen) : joined_rows(chosen);
}

void PerReplica<Tensor>::give_masks(const PerReplica& noted) const {
  if (all_ == 0 && noted.all_ > 0) return SequenceMask::lose(shards_[0]);  // one value, and several masks
  for (std::size_t s = 0; s < shards_.size(); ++s)
    SequenceMask::give(shards_[s], noted.shards_[noted.all_ == 0 ? 0 : s]);
}

Tensor PerReplica<Tensor>::operator[](std::size_t i) const {
  require<OutOfRange>(i < size(), "replica ", i, " of ", size());
  if (all_ == 0) return shards_[0];
  return joined(replicas_[i], i + 1 < size() ? replicas_[i + 1] : all_);
}

Tensor PerReplica<Tensor>::concat() const { return all_ == 0 ? shards_[0] : joined(0, all_); }

Tensor PerReplica<Tensor>::sum() const {
  const Spec& spec = shards_[0].spec();
  require(spec.dtype != boolean, "PerReplica::sum: booleans have no sum; cast them to i32");
  for (const Tensor& shard : shards_)
    require(shard.spec() == spec, "PerReplica::sum: shards have ", spec, " and ", shard.spec(),
            ", expected one shape; reduce the rows of each in the step, or join them by concat()");
  std::vector<ShardRun::Part> parts;
  if (all_ == 0)
    for (int replica = 0; replica < static_cast<int>(size()); ++replica)
      parts.push_back({replica, shards_[0].host_buffer()});
  else
    for (std::size_t s = 0; s < shards_.size(); ++s) parts.push_back({numbers_[s], shards_[s].host_buffer()});
  const int all = all_ == 0 ? static_cast<int>(size()) : all_;
  return Tensor::of_buffer(spec, detail::sum_of_parts(spec, parts, all));
}

std::ostream& operator<<(std::ostream& out, const PerReplica<Tensor>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) out << (i > 0 ? "\n" : "") << "replica " << i << ": " << values[i];
  return out;
}

}  // namespace gradus
