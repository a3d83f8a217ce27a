/// Seeds and keys. Seeds are the SplitMix64 sequence (Steele, Lea, Flood 2014) of the global seed. A key is 53 bits of
/// a seed, so that it is exact in float64, too.
#include "gradus/ops/random_key.h"
#include <mutex>
#include "gradus/graph/context.h"
#include "gradus/ops/call_keys.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/random_state.h"

namespace gradus {

namespace {

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15;

std::uint64_t scrambled(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Until set_seed is called the seed is 0: a program gives the same numbers every time it runs.
struct SeedState {
  std::mutex guard;
  std::uint64_t state = 0;
  std::uint64_t seed = 0;  // the argument of the last set_seed
};
SeedState& seeds() {
  static SeedState only;
  return only;
}
/// The result of `work` on the state that this thread draws from.
template <class Work> auto with_state(Work work) {
  if (std::uint64_t* const own = CallContext::here().random_state) return work(*own);
  std::lock_guard lock(seeds().guard);
  return work(seeds().state);
}

}  // namespace

std::uint64_t random_state_of(std::uint64_t seed) { return scrambled(seed); }

void set_seed(std::uint64_t seed) {
  set_random_state(random_state_of(seed));
  if (CallContext::here().random_state) return;
  std::lock_guard lock(seeds().guard);
  seeds().seed = seed;
}

std::uint64_t last_seed() {
  std::lock_guard lock(seeds().guard);
  return seeds().seed;
}

std::uint64_t random_state() {
  return with_state([](std::uint64_t& state) { return state; });
}

void set_random_state(std::uint64_t state) {
  with_state([&](std::uint64_t& now) { now = state; });
}

std::uint64_t next_seed() {
  return with_state([](std::uint64_t& state) { return scrambled(state += golden_gamma); });
}

void return_seed(std::uint64_t seed) {
  with_state([&](std::uint64_t& state) {
    if (scrambled(state) == seed) state -= golden_gamma;
  });
}

std::int64_t key_of(std::uint64_t seed) { return static_cast<std::int64_t>(scrambled(seed + golden_gamma) >> 11); }

namespace {

Tensor key_leaf(std::uint64_t seed) { return from_values(std::vector{key_of(seed)}, Shape{}); }

Tensor next_global_key() {
  const std::uint64_t seed = next_seed();
  try {
    return key_leaf(seed);
  } catch (...) {
    return_seed(seed);
    throw;
  }
}

}  // namespace

Tensor next_key(std::optional<std::uint64_t> seed) {
  if (seed) return key_leaf(*seed);
  Context* const context = Context::current();
  Tensor key = CallKeys::next();
  if (!key.defined() && context) key = context->next_key();
  if (!key.defined()) key = next_global_key();
  return context ? context->random_key(key) : key;
}

Tensor fold_key(const Tensor& key, std::uint64_t ordinal) {
  return philox(fill({}, static_cast<std::int64_t>(ordinal), i64), key, 0);
}

}  // namespace gradus
