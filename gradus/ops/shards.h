/// Exchange between the shards of a batch, within a step that a strategy runs. Where the whole batch is one shard these
/// change nothing.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// Within a step that a strategy runs: the sum of `x` over the shards of the global batch, which every shard receives.
/// A value that is the same on all shards is counted once for each. Outside of such a step: `x`. InvalidArgument for
/// booleans, and within the body of a branch or loop.
Tensor all_reduce_sum(const Tensor& x);
/// The mean over the shards that have rows; otherwise as all_reduce_sum.
Tensor all_reduce_mean(const Tensor& x);
/// x: T[..., n, ...] -> T[..., sum of all n, ...]: within a step that a strategy runs, the tensors of all shards,
/// concatenated along `axis` in the order of the shards' numbers; every shard receives the result. Shards without rows
/// are left out. If shards have two lengths, n is the same on all, or in proportion to their rows; else it is an
/// InvalidArgument. Any dtype. Outside of such a step: `x`. InvalidArgument for a scalar, and within the body of a
/// branch or loop. The gradient of a shard's x is its part of the sum of the cotangents of all shards.
Tensor all_gather(const Tensor& x, int axis = 0);
inline Tensor all_gather(const Tensor& x, NamedAxis named) { return all_gather(x, named.axis); }
/// x: T[..., n, ...] -> T[..., n / shards, ...]: the sum of `x` over the shards that have rows; each shard receives one
/// part along `axis`, by its number. InvalidArgument unless n is a multiple of their count; otherwise as
/// all_reduce_sum. The gradient is that of the parts, gathered. (JAX: psum_scatter with tiled=True.)
Tensor reduce_scatter(const Tensor& x, int axis = 0);
inline Tensor reduce_scatter(const Tensor& x, NamedAxis named) { return reduce_scatter(x, named.axis); }
/// `x` of shard number `root` of those that have rows, on every shard, bit for bit; any dtype. OutOfRange if there is
/// no such shard; otherwise as all_gather. The gradient of the root's x is the sum of the cotangents of all shards;
/// that of others is 0. (JAX: pbroadcast.)
Tensor broadcast(const Tensor& x, int root = 0);

}  // namespace gradus
