/// Ops of a step that runs on the shards of a batch: one graph says what happens on each shard and what of all of them
/// together. Where the whole batch is one shard they change nothing.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// What argument number `argument` of the call is on the shard that computes. Shards of a batch have one of two
/// lengths, each of which has arguments, and so values, of its own.
struct OfShard {
  static constexpr auto name = "of_shard";
  static constexpr auto takes = Takes::anything;
  static constexpr auto over_shards = OverShards::splits;
  int argument = 0, length = 0;
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// A value that is the same for all shards of a length, on each of them.
struct OnShard {
  static constexpr auto name = "on_shard";
  static constexpr auto takes = Takes::anything;
  static constexpr auto over_shards = OverShards::splits;
  int length = 0;  // which one
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// The sum over all shards, the same on each.
struct AllReduce {
  static constexpr auto name = "all_reduce";
  static constexpr auto over_shards = OverShards::reduces;
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// The sum, for shards of the other length: operands are the AllReduce of the first length's part, and what they add.
struct JoinIn {
  static constexpr auto name = "join_in";
  static constexpr auto over_shards = OverShards::reduces;
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// What a step assigns to the state of an optimizer, which ranks may divide among themselves
/// (backend/divided_state.h).
struct Divisible {
  static constexpr auto name = "divisible";
  static constexpr auto takes = Takes::anything;
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// Within a step that a strategy runs: the sum of `x` over the shards of the global batch, each of which gets it. A
/// value that is the same on all shards is counted once for each. Outside of such a step: `x`. InvalidArgument for
/// booleans, and within the body of a branch or loop.
Tensor all_reduce_sum(const Tensor& x);
/// The mean over the shards that have rows; otherwise as all_reduce_sum.
Tensor all_reduce_mean(const Tensor& x);

}  // namespace gradus
