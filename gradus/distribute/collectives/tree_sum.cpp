#include "gradus/distribute/collectives/tree_sum.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <type_traits>
#include "gradus/base/divide.h"
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"

namespace gradus {
namespace {

constexpr std::int64_t block = 1024;  // elements that pass through the tree together: they stay in the nearest cache

/// In which elements are summed: integers wrap around, so that no sum overflows.
template <class T> struct SumOf {
  using Type = ComputedIn<T>;
};
template <std::integral T> struct SumOf<T> {
  using Type = std::make_unsigned_t<T>;
};

/// The tree for elements that are stored as T and summed as S.
template <class T, class S> class Tree {
 public:
  /// The sum of a node of `levels` levels, up to `block` elements at a time.
  Tree(int shards, std::span<const PartialSum> parts, int levels, std::int64_t block, bool narrow)
      : shards_(shards),
        parts_(parts),
        narrow_(narrow),
        block_(block),
        rights_(std::make_unique_for_overwrite<S[]>(static_cast<std::size_t>(levels * block))) {}

  /// Elements [at, at + count) of the sum over the node [begin, begin + size), cut off at the last shard.
  void sum(int begin, int size, std::int64_t at, std::int64_t count, int level, S* out) {
    const int end = std::min(begin + size, shards_);
    internal_check(size >= 1 && next_ < parts_.size(), "partial sums that are no nodes of their sum");
    if (parts_[next_].node == ShardRange{begin, end}) return load(parts_[next_++], at, count, out);
    const int middle = begin + size / 2;
    sum(begin, size / 2, at, count, level, out);
    if (middle >= end) return;
    S* const right = rights_.get() + level * block_;
    sum(middle, size / 2, at, count, level + 1, right);
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<S>(out[i] + right[i]);
    if constexpr (!std::is_same_v<T, S> && NarrowElement<T>)
      if (narrow_)
        for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<S>(static_cast<T>(out[i]));
  }
  void begin_block() { next_ = 0; }
  bool took_all() const { return next_ == parts_.size(); }

 private:
  void load(const PartialSum& part, std::int64_t at, std::int64_t count, S* out) const {
    if constexpr (!std::is_same_v<T, S> && NarrowElement<T>) {
      if (narrow_ || part.node.count() == 1) {
        const T* const values = reinterpret_cast<const T*>(part.values) + (at - part.first);
        for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<S>(values[i]);
        return;
      }
    }
    std::memcpy(out, part.values + (at - part.first) * static_cast<std::int64_t>(sizeof(S)),
                static_cast<std::size_t>(count) * sizeof(S));
  }

  const int shards_;
  const std::span<const PartialSum> parts_;
  const bool narrow_;
  const std::int64_t block_;
  const std::unique_ptr<S[]> rights_;  // [level, block]
  std::size_t next_ = 0;
};

int size_of_node(ShardRange node) {
  int size = 1;
  while (size < node.count()) size *= 2;
  return size;
}

template <class T>
void sum_as(int shards, ShardRange node, std::span<const PartialSum> parts, std::int64_t begin, std::int64_t end,
            std::byte* out, bool rounds, bool narrow) {
  using S = typename SumOf<T>::Type;
  const int size = size_of_node(node);
  Tree<T, S> tree(shards, parts, static_cast<int>(std::bit_width(static_cast<unsigned>(size))),
                  std::min(block, end - begin), narrow);
  std::array<S, block> sums;
  for (std::int64_t at = begin; at < end; at += block) {
    const std::int64_t count = std::min(block, end - at);
    tree.begin_block();
    tree.sum(node.begin, size, at, count, 0, sums.data());
    internal_check(tree.took_all(), "partial sums that are no nodes of their sum");
    if (NarrowElement<T> && rounds) {
      T* const written = reinterpret_cast<T*>(out) + (at - begin);
      for (std::int64_t i = 0; i < count; ++i) written[i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
    } else {
      std::memcpy(out + (at - begin) * static_cast<std::int64_t>(sizeof(S)), sums.data(),
                  static_cast<std::size_t>(count) * sizeof(S));
    }
  }
}

}  // namespace

ShardRange shards_of(int rank, int ranks, int shards) {
  const auto from = [&](std::int64_t r) { return static_cast<int>(divide_up(r * shards, ranks)); };
  return {from(rank), from(rank + 1)};
}

std::vector<ShardRange> nodes_of(ShardRange range, int shards) {
  std::vector<ShardRange> out;
  for (int begin = range.begin; begin < range.end;) {
    int size = 1;
    const auto fits = [&](int larger) {
      return begin % larger == 0 && std::min(begin + larger, shards) <= range.end && larger / 2 < shards - begin;
    };
    while (fits(2 * size)) size *= 2;
    out.push_back({begin, std::min(begin + size, shards)});
    begin = out.back().end;
  }
  return out;
}

DType summed_in(DType type) {
  require(type != boolean, "a sum over replicas: booleans have none: cast them to i32");
  return computed_in(type);
}

DType type_of_partial(DType type, ShardRange node, bool narrow) {
  return narrow || node.count() == 1 ? type : summed_in(type);
}

void tree_sum(DType type, int shards, ShardRange node, std::span<const PartialSum> parts, std::int64_t begin,
              std::int64_t end, std::byte* out, DType out_type, bool narrow) {
  internal_check(!parts.empty(), "a sum of nothing");
  const KernelFloats state;
  with_type(type, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) sum_as<T>(shards, node, parts, begin, end, out, out_type == type, narrow);
  });
}

}  // namespace gradus
