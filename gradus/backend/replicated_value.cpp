#include "gradus/backend/replicated_value.h"
#include <algorithm>
#include "gradus/base/error.h"

namespace gradus {

ReplicatedValue::ReplicatedValue(std::vector<Ref<Buffer>> copies, std::vector<Device> devices)
    : copies_(std::move(copies)), devices_(std::move(devices)) {
  internal_check(!copies_.empty() && copies_.size() == devices_.size(), copies_.size(), " copies on ", devices_.size(),
                 " devices");
}

void ReplicatedValue::wait() const {
  for (const Ref<Buffer>& copy : copies_) copy->device_memory()->wait();
}

Ref<Buffer> ReplicatedValue::copy_on(const Device& device) const {
  const auto found = std::ranges::find(devices_, device);
  return found == devices_.end() ? nullptr : copies_[static_cast<std::size_t>(found - devices_.begin())];
}

const ReplicatedValue* ReplicatedValue::of(const Buffer& buffer) {
  return dynamic_cast<const ReplicatedValue*>(buffer.device_memory());
}

Ref<Buffer> ReplicatedValue::buffer_of(std::vector<Ref<Buffer>> copies, const std::vector<Device>& devices) {
  const std::int64_t bytes = copies.front()->bytes();
  return Buffer::of_device(std::make_shared<ReplicatedValue>(std::move(copies), devices), bytes);
}

}  // namespace gradus
