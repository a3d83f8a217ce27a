#include "gradus/backend/divided_value.h"
#include "gradus/base/error.h"

namespace gradus {

const void* DividedValue::host() {
  throw InvalidArgument(text(
      "this value is state of an optimizer that is divided among ", cuts_.size() - 1,
      " ranks (.shard_optimizer), and this process has its own part alone; before it is read, as by Checkpoints or "
      "outside of strategy.run, call strategy.gather(optimizer.variables()) on every rank"));
}

const DividedValue* DividedValue::of(const Buffer& buffer) {
  return dynamic_cast<const DividedValue*>(buffer.device_memory());
}

Ref<Buffer> DividedValue::buffer_of(Ref<Buffer> part, const Cuts& cuts, std::int64_t bytes) {
  return Buffer::of_device(std::make_shared<DividedValue>(std::move(part), cuts), bytes);
}

}  // namespace gradus
