#include "gradus/tensor/device.h"
#include "gradus/base/error.h"

namespace gradus {

std::ostream& operator<<(std::ostream& out, DeviceKind kind) {
  constexpr std::array<const char*, device_kinds.size()> names{"cpu", "gpu", "tpu", "plugin"};
  return out << names[static_cast<std::size_t>(kind)];
}

std::ostream& operator<<(std::ostream& out, const Device& device) { return out << text("cpu(", device.index, ')'); }

Device cpu(int index) {
  require(index >= 0, "cpu: the index of a device is not negative, given ", index);
  return {DeviceKind::cpu, index};
}

std::vector<Device> devices(DeviceKind) { return {Device{}}; }

Device default_device() { return {}; }

}  // namespace gradus
