/// Values of shards whose sums depend on the order in which they are added, and what their sum has to be.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/distribute/collectives/collectives.h"
#include "gradus/tensor/dtype.h"

namespace gradus {

using Bytes = std::vector<std::byte>;

template <class T> T summand(int shard, std::int64_t element) {
  const std::uint64_t drawn = mix(static_cast<std::uint64_t>(shard) + 17, static_cast<std::uint64_t>(element));
  if constexpr (FloatingElement<T>) {
    const double scale = static_cast<double>(1 << (drawn % 11));
    return static_cast<T>((static_cast<double>(drawn >> 11) / 9007199254740992.0 - 0.5) * scale);
  } else {
    return static_cast<T>(drawn);
  }
}

inline Bytes summands(DType type, int shard, std::int64_t count) {
  Bytes out(static_cast<std::size_t>(count * size_of(type)));
  with_type(type, [&]<class T>(T) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = summand<T>(shard, i);
      std::memcpy(out.data() + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
    }
  });
  return out;
}

/// Of elements of the same type as they are summed in, one at a time: the plain meaning of tree_sum.
template <class S> S plain_tree(int begin, int size, int shards, const auto& value) {
  if (size == 1) return value(begin);
  const S left = plain_tree<S>(begin, size / 2, shards, value);
  if (begin + size / 2 >= shards) return left;
  const S right = plain_tree<S>(begin + size / 2, size / 2, shards, value);
  if constexpr (std::is_integral_v<S>)  // wraps around
    return static_cast<S>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
  else return left + right;
}

inline Bytes plain_sums(DType type, int shards, std::int64_t count) {
  Bytes out(static_cast<std::size_t>(count * size_of(type)));
  int size = 1;
  while (size < shards) size *= 2;
  with_type(type, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      using S = ComputedIn<T>;
      for (std::int64_t i = 0; i < count; ++i) {
        const T sum = static_cast<T>(
            plain_tree<S>(0, size, shards, [&](int shard) { return static_cast<S>(summand<T>(shard, i)); }));
        std::memcpy(out.data() + i * static_cast<std::int64_t>(sizeof(T)), &sum, sizeof(T));
      }
    }
  });
  return out;
}

/// The bits that all_reduce leaves on this rank.
inline Bytes all_reduced(Collectives& collectives, DType type, std::int64_t count) {
  const ShardRange own = collectives.own_shards();
  std::vector<Bytes> values;
  std::vector<const std::byte*> pointers;
  for (int shard = own.begin; shard < own.end; ++shard) values.push_back(summands(type, shard, count));
  for (const Bytes& each : values) pointers.push_back(each.data());
  Bytes out(static_cast<std::size_t>(count * size_of(type)));
  collectives.all_reduce(type, pointers, out);
  return out;
}

}  // namespace gradus
