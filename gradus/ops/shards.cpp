/// Rules of the ops on shards.
#include "gradus/ops/shards.h"
#include "gradus/graph/context.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

Spec same_as_operand(std::string_view op, Specs in) {
  require(in.size() == 1, op, ": expected 1 operand, got ", in.size());
  return in[0];
}

}  // namespace

Spec OfShard::infer(Specs in) const { return same_as_operand(name, in); }
Tensors OfShard::vjp(In, const Tensor&, const Tensor& dy) const { return {dy}; }
Tensor OfShard::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0]); }

Spec OnShard::infer(Specs in) const { return same_as_operand(name, in); }
Tensors OnShard::vjp(In, const Tensor&, const Tensor& dy) const { return {dy}; }
Tensor OnShard::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0]); }

Spec AllReduce::infer(Specs in) const { return same_as_operand(name, in); }
/// What every shard makes of the sum counts.
Tensors AllReduce::vjp(In, const Tensor&, const Tensor& dy) const { return {sum_over_shards(dy)}; }
Tensor AllReduce::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0]); }

Spec JoinIn::infer(Specs in) const {
  require(in.size() == 2 && in[0] == in[1], "join_in: expected a sum, and a part of its spec");
  return in[0];
}
Tensors JoinIn::vjp(In, const Tensor&, const Tensor& dy) const { return {{}, sum_over_shards(dy)}; }
Tensor JoinIn::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0], in[1]); }

Spec Divisible::infer(Specs in) const { return same_as_operand(name, in); }
Tensors Divisible::vjp(In, const Tensor&, const Tensor& dy) const { return {dy}; }
Tensor Divisible::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0]); }

Tensor all_reduce_sum(const Tensor& x) {
  require(x.dtype() != boolean, "all_reduce_sum: booleans have no sum; cast them to i32");
  return sum_over_shards(x);
}

Tensor all_reduce_mean(const Tensor& x) {
  require(is_floating(x.dtype()), "all_reduce_mean: ", x.spec(), " has no mean; cast it to a floating type");
  const int shards = number_of_shards();
  return shards > 0 ? sum_over_shards(x) / static_cast<double>(shards) : x;
}

}  // namespace gradus
