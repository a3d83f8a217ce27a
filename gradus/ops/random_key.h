/// Keys of random ops. A key is a scalar i64 in [0, 2^53). It is data, so another key never recompiles. Outside of
/// calls, keys follow from the seed and the number of keys since it was set. In a traced call they follow from a hidden
/// state that function/ binds anew at each call.
#pragma once
#include <cstdint>
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Sets the seed of every random op, initializer and shuffle without its own seed, and restarts the sequence of keys.
void set_seed(std::uint64_t seed);

/// A seed that follows from the global one and from the number of seeds taken since it was set: for initializers,
/// shuffles and calls of functions.
std::uint64_t next_seed();

/// A key for one random op. With a `seed` it is always the same, else the next one of the call, traced or op by op,
/// else of the global seed.
Tensor next_key(std::optional<std::uint64_t> seed);

/// The key that follows from this seed, on the host.
std::int64_t key_of(std::uint64_t seed);

/// Key number `ordinal` of those that follow from one key. A formula: inside a trace it depends on the value that `key`
/// is bound to.
Tensor fold_key(const Tensor& key, std::uint64_t ordinal);

}  // namespace gradus
