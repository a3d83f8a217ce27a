/// ReplicatedValue: a value of which each device of a group has a copy, such as a Variable that a program on all of
/// them assigns; or what differs from device to device, such as rows of a batch. It stands in a Variable as another
/// value does.
#pragma once
#include <vector>
#include "gradus/tensor/buffer.h"
#include "gradus/tensor/device.h"

namespace gradus {

class ReplicatedValue final : public DeviceMemory {
 public:
  /// `copies`: memory of `devices`, one each.
  ReplicatedValue(std::vector<Ref<Buffer>> copies, std::vector<Device> devices);

  void wait() const override;
  /// Of the first device.
  const void* host() override { return copies_.front()->host(); }

  const std::vector<Ref<Buffer>>& copies() const { return copies_; }
  /// Whether these are the devices, in this order.
  bool is_on(const std::vector<Device>& devices) const { return devices == devices_; }
  /// The copy of this device; null if it has none.
  Ref<Buffer> copy_on(const Device& device) const;

  /// What `buffer` holds, if it is replicated; else null.
  static const ReplicatedValue* of(const Buffer& buffer);
  static Ref<Buffer> buffer_of(std::vector<Ref<Buffer>> copies, const std::vector<Device>& devices);

 private:
  const std::vector<Ref<Buffer>> copies_;
  const std::vector<Device> devices_;
};

}  // namespace gradus
