/// Where tensors live. There is the processor; cpu(1), cpu(2) ... are logical devices that share it.
#pragma once
#include <array>
#include <cstdint>
#include <ostream>
#include <vector>

namespace gradus {

/// cuda: another name of gpu. plugin: whatever an out-of-tree backend drives.
enum class DeviceKind : std::uint8_t { cpu, gpu, tpu, plugin, cuda = gpu };
inline constexpr std::array device_kinds{DeviceKind::cpu, DeviceKind::gpu, DeviceKind::tpu, DeviceKind::plugin};
/// "cpu"
std::ostream& operator<<(std::ostream& out, DeviceKind kind);

/// A value: cpu(0).
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
  /// "cpu(0)"
  friend std::ostream& operator<<(std::ostream& out, const Device& device);
};

/// InvalidArgument for a negative index.
Device cpu(int index = 0);
/// The physical devices of a kind; empty is an answer, not an error.
std::vector<Device> devices(DeviceKind kind);
/// Where new tensors and variables live.
Device default_device();

}  // namespace gradus
