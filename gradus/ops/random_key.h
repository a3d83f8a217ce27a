/// Where random ops get their keys. A key is a scalar i64 in [0, 2^53) that is data, so that another key never
/// recompiles. Outside traces keys follow from the seed and from how many were asked for since it was set; inside a
/// trace they follow from a hidden state that function/ binds anew at each call.
#pragma once
#include <cstdint>
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Seed of every random op, initializer and shuffle that has none of its own. Starts the numbers over.
void set_seed(std::uint64_t seed);

/// A seed that follows from the global one and from how many were asked for since it was set: for initializers,
/// shuffles and calls of functions.
std::uint64_t next_seed();

/// A key for one random op: of `seed` if there is one (always the same numbers), else the next one.
Tensor next_key(std::optional<std::uint64_t> seed);

/// The key that follows from this seed, on the host.
std::int64_t key_of(std::uint64_t seed);

/// Key number `ordinal` of those that follow from one key. A formula: inside a trace it depends on what `key` is bound
/// to.
Tensor fold_key(const Tensor& key, std::uint64_t ordinal);

/// What next_key does within a call of a function, traced or op by op: the key for the next random op of the call;
/// empty outside of calls. Installed by function/, which counts the ordinals.
struct TracedKeys {
  static Tensor (*next)();
};

}  // namespace gradus
