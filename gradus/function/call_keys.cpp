/// The keys of calls.
#include "gradus/function/call_keys.h"
#include "gradus/graph/context.h"
#include "gradus/ops/random_key.h"

namespace gradus {
namespace {
CallKeys*& innermost() {
  thread_local CallKeys* keys = nullptr;
  return keys;
}
}  // namespace

Tensor CallKeys::fresh() {
  Ref<Buffer> buffer = Buffer::allocate(sizeof(std::int64_t));
  *buffer->data<std::int64_t>() = key_of(next_seed());
  return Tensor::of_buffer({i64, {}}, std::move(buffer));
}

CallKeys::CallKeys() : outer_(innermost()) { innermost() = this; }
CallKeys::~CallKeys() { innermost() = outer_; }

Tensor CallKeys::next() {
  CallKeys* keys = innermost();
  if (!keys || Untraced::is_active()) return {};
  if (!keys->key_.defined()) keys->key_ = fresh();
  return fold_key(keys->key_, keys->ordinals_++);
}

}  // namespace gradus
