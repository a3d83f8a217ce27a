/// The primitives of a step that runs on the shards of a batch: one graph says what happens on each shard and what of
/// all of them together.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Argument number `argument` of the call on the shard that computes. Shards of a batch have one of two lengths; each
/// length has arguments, and so values, of its own.
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
  bool narrow = false;  // of narrow floats: each addition of two shards' sums, in f32, is rounded
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

/// A value that a step assigns to the state of an optimizer, which ranks may divide among themselves
/// (backend/parts/divided_state.h).
struct Divisible {
  static constexpr auto name = "divisible";
  static constexpr auto takes = Takes::anything;
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// x: T[n, inner...] -> T[all, inner...]: those of all shards, one behind the other by their numbers, the same on each.
struct AllGather {
  static constexpr auto name = "all_gather";
  static constexpr auto takes = Takes::anything;
  static constexpr auto over_shards = OverShards::gathers;
  std::int64_t first = 0, second = 0;  // n on shards of either length
  int of_first = 1, of_second = 0;     // how many shards have each
  bool pads = false;                   // shards of the second length have fewer rows, and add zeros to have as many
  std::int64_t all() const { return first * of_first + second * of_second; }
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// The value of the shard that is number `place` of those with rows, the same on each.
struct FromShard {
  static constexpr auto name = "from_shard";
  static constexpr auto takes = Takes::anything;
  static constexpr auto over_shards = OverShards::gathers;
  int place = 0;
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// As JoinIn, for an AllGather and for a FromShard.
struct JoinGather {
  static constexpr auto name = "join_gather";
  static constexpr auto takes = Takes::anything;
  static constexpr auto over_shards = OverShards::gathers;
  std::int64_t first = 0, second = 0;
  int of_first = 1, of_second = 0;
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};
struct JoinFrom {
  static constexpr auto name = "join_from";
  static constexpr auto takes = Takes::anything;
  static constexpr auto over_shards = OverShards::gathers;
  int place = 0;
  void alias() const {}
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};
/// The op by which shards of the other length add to what `op` makes.
AnyOp joining(const AnyOp& op);

}  // namespace gradus
