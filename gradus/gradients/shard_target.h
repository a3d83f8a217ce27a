/// A plain Tensor as the target of a derivative, in a step that a strategy runs. It has no weight. So one that all
/// shards of the batch have in common counts once, and one that differs from shard to shard has no gradient by what
/// they have in common: that is the gradient of a part of the batch.
#pragma once
#include <string_view>
#include "gradus/autodiff/vjp.h"

namespace gradus {

/// True if `x` differs from shard to shard of the batch that is divided here.
bool differs_by_shard(const Tensor& x);

/// What to give in place of a value that differs from shard to shard.
inline constexpr std::string_view loss_for_shards =
    " differs from shard to shard of the batch, and does not say how shards add up; take Loss::mean(per_example), "
    "whose "
    "shards count by their examples, or Loss::sum(scalar), whose shards add, as in Loss::sum(reduce_sum(per_example) / "
    "global_batch)";

/// How the target of a derivative stands to the shards.
class ShardTarget {
 public:
  ShardTarget(const Tensor& target, const Stops& stops);

  /// True if all shards have it in common, and made it together.
  bool is_joint() const { return is_joint_; }
  /// InvalidArgument, opened by `op`, if the derivative by `source` is that of one shard, of what all have in common.
  void require_whole(std::string_view op, const Tensor& target, const Tensor& source) const;
  /// As require_whole, of derivatives that keep the rows of the target: only a scalar is refused.
  void require_rows(std::string_view op, const Tensor& target, const Tensor& source) const;
  /// InvalidArgument for a matrix of derivatives of a joint target.
  void require_own(std::string_view op, const Tensor& target) const;
  /// A joint target, or its cotangent, as each shard counts it: all shares add up to it.
  Tensor share(const Tensor& x) const;
  /// The derivative of the sum of all shares by a source that is a shard's own, or that all have in common.
  Tensor joined(const Tensor& derivative, bool is_own) const;

 private:
  int shards_;
  bool differs_, is_joint_;
};

}  // namespace gradus
