/// Tree reduction: sums over shards in an order that the number of shards alone decides, a binary tree over their
/// numbers, whose nodes are aligned to powers of two. So the bits of a sum do not depend on how many ranks hold the
/// shards.
///
///   5 shards:   ((0 + 1) + (2 + 3)) + 4
///   3 ranks:    rank 0: [0, 2)        rank 1: [2, 4)        rank 2: [4, 5)
///   2 ranks:    rank 0: [0, 2), [2, 3)      rank 1: [3, 4), [4, 5)
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "gradus/tensor/dtype.h"

namespace gradus {

/// Shards [begin, end).
struct ShardRange {
  int begin = 0, end = 0;
  int count() const { return end - begin; }
  bool operator==(const ShardRange&) const = default;
};

/// The shards of a rank: rank r of n has those from ceil(r * shards / n) on, so each has one at least if n <= shards.
ShardRange shards_of(int rank, int ranks, int shards);

/// The largest nodes of the tree over `shards` that `range` consists of, in order.
std::vector<ShardRange> nodes_of(ShardRange range, int shards);

/// The sum over some shards: of one it has the type of the values, of more that in which they are summed.
struct PartialSum {
  ShardRange node;
  const std::byte* values;
  std::int64_t first = 0;  // which element `values` begins with
};

/// In which sums of `type` are kept until they are complete: f32 for f16 and bf16. InvalidArgument of booleans.
DType summed_in(DType type);
/// The type of a partial sum. `narrow`: sums are rounded to `type` after each addition.
DType type_of_partial(DType type, ShardRange node, bool narrow = false);

/// The sum over `node` of elements [begin, end) of the partial sums, which are nodes within it, in order. `out` gets
/// end - begin elements of `out_type`: summed_in(type), or `type` itself, to which they are rounded once. `narrow`:
/// each node of the tree is rounded to `type`, so partial sums have that type, and the bits do not depend on which
/// there are.
void tree_sum(DType type, int shards, ShardRange node, std::span<const PartialSum> parts, std::int64_t begin,
              std::int64_t end, std::byte* out, DType out_type, bool narrow = false);

}  // namespace gradus
