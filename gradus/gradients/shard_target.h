/// A plain Tensor as the target of a derivative, in a step that a strategy runs. It has no weight. A target that is the
/// same on all shards of the batch therefore counts once. A target that differs from shard to shard has no gradient by
/// values that all shards share: that would be the gradient of a part of the batch.
#pragma once
#include <string_view>
#include "gradus/autodiff/vjp.h"

namespace gradus {

/// True if `x` differs from shard to shard of the batch that the current step divides.
bool differs_by_shard(const Tensor& x);

/// The end of errors about a value that differs from shard to shard, with the remedy.
inline constexpr std::string_view loss_for_shards =
    " differs from shard to shard of the batch, and does not say how shards add up; take Loss::mean(per_example), "
    "whose shards count by their examples, or Loss::sum(scalar), whose shards add, as in "
    "Loss::sum(reduce_sum(per_example) / global_batch)";

/// The relation of a derivative's target to the shards.
class ShardTarget {
 public:
  ShardTarget(const Tensor& target, const Stops& stops);

  /// True if the target is the same on all shards, which computed it together.
  bool is_joint() const { return is_joint_; }
  /// InvalidArgument, opened by `op`, for the derivative of one shard's target by a source that all shards share.
  void require_whole(std::string_view op, const Tensor& target, const Tensor& source) const;
  /// As require_whole, for derivatives that keep the rows of the target: only a scalar is refused.
  void require_rows(std::string_view op, const Tensor& target, const Tensor& source) const;
  /// InvalidArgument for a matrix of derivatives of a joint target.
  void require_own(std::string_view op, const Tensor& target) const;
  /// This shard's share of a joint target, or of its cotangent: all shares add up to it.
  Tensor share(const Tensor& x) const;
  /// The derivative of the sum of all shares by a source that belongs to the shard (`is_own`), or that all shards
  /// share.
  Tensor joined(const Tensor& derivative, bool is_own) const;

 private:
  int shards_;
  bool differs_, is_joint_;
};

}  // namespace gradus
