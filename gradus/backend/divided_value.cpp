#include "gradus/backend/divided_value.h"
#include <algorithm>
#include <cstring>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"

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

const void* RepeatedValue::host() {
  const std::lock_guard lock(guard_);
  if (!whole_) whole_ = part(count_);
  return whole_->data();
}

Ref<Buffer> RepeatedValue::part(std::int64_t count) const {
  const std::int64_t bytes = element_->bytes();
  Ref<Buffer> made = Buffer::allocate(count * bytes, "state of an optimizer");
  std::byte* const to = made->data<std::byte>();
  if (count == 0) return made;
  std::memcpy(to, element_->host(), static_cast<std::size_t>(bytes));
  for (std::int64_t done = 1; done < count;) {  // twice as many each time
    const std::int64_t more = std::min(done, count - done);
    std::memcpy(to + done * bytes, to, static_cast<std::size_t>(more * bytes));
    done += more;
  }
  return made;
}

const RepeatedValue* RepeatedValue::of(const Buffer& buffer) {
  return dynamic_cast<const RepeatedValue*>(buffer.device_memory());
}

Ref<Buffer> RepeatedValue::buffer_of(Ref<Buffer> element, std::int64_t count) {
  const std::int64_t bytes = element->bytes() * count;
  return Buffer::of_device(std::make_shared<RepeatedValue>(std::move(element), count), bytes);
}

std::uint64_t hash_among_ranks(const Buffer& value, std::int64_t bytes) {
  if (DividedValue::of(value)) return 0;
  const RepeatedValue* const repeated = RepeatedValue::of(value);
  const Ref<Buffer> element = repeated ? repeated->part(1) : Ref<Buffer>();
  const Buffer& read = element ? *element : value;
  return hash_of_bytes(
      {static_cast<const std::byte*>(read.host()), static_cast<std::size_t>(std::min(bytes, read.bytes()))});
}

}  // namespace gradus
