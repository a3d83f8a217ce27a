/// ReplicatedValue: a value with a copy on each device of a group, such as a Variable that a program on all of them
/// assigns; or one that differs from device to device, such as rows of a batch. It stands in a Variable as another
/// value does.
#pragma once
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/tensor/buffer.h"
#include "gradus/tensor/device.h"

namespace gradus {

class ReplicatedValue final : public DeviceMemory {
 public:
  /// `copies`: memory of `devices`, one each.
  ReplicatedValue(std::vector<Ref<Buffer>> copies, std::vector<Device> devices);

  void wait() const override;
  /// The copy of the first device.
  const void* host() override { return copies_.front()->host(); }

  const std::vector<Ref<Buffer>>& copies() const { return copies_; }
  /// True if these are the devices, in this order.
  bool is_on(const std::vector<Device>& devices) const { return devices == devices_; }
  /// The copy of this device; null if it has none.
  Ref<Buffer> copy_on(const Device& device) const;

  /// The replicated value in `buffer`, else null.
  static const ReplicatedValue* of(const Buffer& buffer);
  static Ref<Buffer> buffer_of(std::vector<Ref<Buffer>> copies, const std::vector<Device>& devices);

 private:
  const std::vector<Ref<Buffer>> copies_;
  const std::vector<Device> devices_;
};

}  // namespace gradus
