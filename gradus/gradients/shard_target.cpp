/// Shares of joint targets, and refused targets.
#include "gradus/gradients/shard_target.h"
#include "gradus/graph/shard_context.h"
#include "gradus/ops/elementwise.h"

namespace gradus {

bool differs_by_shard(const Tensor& x) { return number_of_shards() > 0 && x.defined() && x.node()->varies; }

ShardTarget::ShardTarget(const Tensor& target, const Stops& stops)
    : shards_(number_of_shards()),
      differs_(differs_by_shard(target)),
      is_joint_(shards_ > 0 && !differs_ && target.defined() && reads_all_shards(target, stops)) {}

void ShardTarget::require_whole(std::string_view op, const Tensor& target, const Tensor& source) const {
  require(!differs_ || source.node()->varies, op, ": the target, ", target.spec(), ",", loss_for_shards,
          "; or make it the same on all shards by all_reduce_sum");
}

void ShardTarget::require_rows(std::string_view op, const Tensor& target, const Tensor& source) const {
  if (target.shape().rank() == 0) require_whole(op, target, source);
}

void ShardTarget::require_own(std::string_view op, const Tensor& target) const {
  require(!is_joint_, op, ": the target, ", target.spec(),
          ", is made of all shards of the batch, and a matrix of its derivatives would mix their rows; take it of what "
          "a shard makes of its own rows, or outside of strategy.run");
}

Tensor ShardTarget::share(const Tensor& x) const {
  return is_joint_ && !x.node()->varies ? x / static_cast<double>(shards_) : x;
}

Tensor ShardTarget::joined(const Tensor& derivative, bool is_own) const {
  return is_joint_ && !is_own ? sum_over_shards(derivative) : derivative;
}

}  // namespace gradus
