/// Random keys of one call of a function that runs op by op, or of many calls that are traced as one: the same numbers
/// as when it is compiled.
#pragma once
#include <optional>
#include "gradus/graph/call_context.h"
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail::inline rooms {

/// While it lives, the random ops of this thread take their keys from one key, in order; not those in traces within it.
class CallKeys {
 public:
  /// From `key`, as in a call whose key it is; empty: one is drawn when it is first asked for, as in a compiled call.
  explicit CallKeys(Tensor key = {}) : key_(std::move(key)) {}

  /// A key for a call: i64, drawn from the innermost CallSeed of this thread, else from the global seed: then `drawn`
  /// is told which of its seeds it took.
  static Tensor fresh(std::optional<std::uint64_t>* drawn = nullptr);
  /// The next key of the innermost CallKeys of this thread; empty if there is none.
  static Tensor next();

 private:
  Tensor key_;
  std::uint64_t ordinals_ = 0;
  const FieldScope<&CallContext::keys> scope_{this};
};

/// While it lives, the calls of this thread draw their keys from `seed`: what is random in them does not depend on what
/// else is called, nor on the thread.
class CallSeed {
 public:
  explicit CallSeed(std::uint64_t seed) : seed_(seed) {}

  /// The key of the first call that draws from `seed`.
  static std::int64_t first_key(std::uint64_t seed);

 private:
  friend class CallKeys;
  const std::uint64_t seed_;
  std::uint64_t calls_ = 0;
  const FieldScope<&CallContext::seed> scope_{this};
};

}  // namespace detail::inline rooms

}  // namespace gradus
