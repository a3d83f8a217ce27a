/// The keys of calls.
#include "gradus/ops/call_keys.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/random_key.h"

namespace gradus {

std::int64_t CallSeed::first_key(std::uint64_t seed) { return key_of(mix(seed, 0)); }

Tensor CallKeys::fresh(std::optional<std::uint64_t>* drawn) {
  CallSeed* own = CallContext::here().seed;
  Ref<Buffer> buffer = Buffer::allocate(sizeof(std::int64_t));
  const std::uint64_t seed = own ? mix(own->seed_, own->calls_++) : next_seed();
  if (drawn && !own) *drawn = seed;
  *buffer->data<std::int64_t>() = key_of(seed);
  return Tensor::of_buffer({i64, {}}, std::move(buffer));
}

Tensor CallKeys::next() {
  CallKeys* keys = CallContext::here().keys;
  if (!keys) return {};
  if (!keys->key_.defined()) keys->key_ = fresh();
  return fold_key(keys->key_, keys->ordinals_++);
}

}  // namespace gradus
