/// Devices: where tensors live and are computed. cpu(1), cpu(2) ... are logical devices that share the processor: each
/// has its own share of the threads and its own account of memory, so that one machine tests what many have.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <ostream>
#include <vector>

namespace gradus {

/// cuda: another name of gpu. plugin: whatever an out-of-tree backend drives.
enum class DeviceKind : std::uint8_t { cpu, gpu, tpu, plugin, cuda = gpu };
inline constexpr std::array device_kinds{DeviceKind::cpu, DeviceKind::gpu, DeviceKind::tpu, DeviceKind::plugin};
/// "cpu"
std::ostream& operator<<(std::ostream& out, DeviceKind kind);

/// A value: cpu:0. It may name a device that is not there; whoever uses it says so.
struct Device {
  static constexpr int most = 63;  // of a kind
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
  /// "cpu:0"
  friend std::ostream& operator<<(std::ostream& out, const Device& device);
};

/// A logical device of the processor. InvalidArgument unless 0 <= index < 63.
Device cpu(int index = 0);
/// Unavailable, with the devices that there are, if the machine has no such device or the library no backend for it.
Device gpu(int index = 0);
Device cuda(int index = 0);
Device tpu(int index = 0);

/// The physical devices of a kind; empty is an answer, not an error. Logical devices of the processor are not listed.
std::vector<Device> devices(DeviceKind kind);

/// Where new tensors and Variables live: the device of the innermost DeviceScope of this thread, else that of
/// set_default_device, else the processor.
Device default_device();
/// For the whole process. What has been made stays where it is. Unavailable if the device is not there.
void set_default_device(const Device& device);

/// The device of a spec, or none, in one byte. A tensor without one is *uncommitted*: it lives on the default device
/// and goes to the device of what it meets. Tensors on two named devices meet by Tensor::to alone.
class Placement {
 public:
  constexpr Placement() = default;
  constexpr Placement(const Device& device)
      : code_(static_cast<std::uint8_t>(1 + static_cast<int>(device.kind) * Device::most + device.index)) {}
  constexpr bool is_named() const { return code_ != 0; }
  /// Of a named one.
  constexpr Device device() const {
    return {static_cast<DeviceKind>((code_ - 1) / Device::most), (code_ - 1) % Device::most};
  }
  constexpr std::uint8_t code() const { return code_; }
  /// Where it is: the default device of the process if none is named.
  Placement resolved() const {
    Placement there = *this;
    if (!is_named()) there.code_ = process_code_.load(std::memory_order_acquire);
    return there;
  }
  Device physical() const { return resolved().device(); }
  bool operator==(const Placement&) const = default;
  /// "@cpu:1"; nothing if none is named
  friend std::ostream& operator<<(std::ostream& out, Placement placement);

 private:
  friend void set_default_device(const Device& device);
  static inline constinit std::atomic<std::uint8_t> process_code_{1};  // cpu:0
  std::uint8_t code_ = 0;
};
static_assert(Placement(Device{}).code() == 1);
/// Reads "cpu:1"; InvalidArgument for anything else.
Device device_from_text(std::string_view text);

/// In its lifetime this thread computes on `device`, where new tensors and Variables live, too. Operands that are on
/// other devices are copied, with gradients. Scopes nest.
class DeviceScope {
 public:
  /// Unavailable, with the devices that there are, if there is none such.
  [[nodiscard]] explicit DeviceScope(const Device& device);
  ~DeviceScope() { current_ = before_; }
  DeviceScope(const DeviceScope&) = delete;

  // For the rooms of the library.
  /// Without a device, none is in effect.
  [[nodiscard]] explicit DeviceScope(Placement placement) : before_(current_) { current_ = placement; }
  static Placement current() { return current_; }

 private:
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local Placement current_{};
  const Placement before_;
};

// For backends.

/// There are so many devices of this kind from now on.
void set_device_count(DeviceKind kind, int count);
/// Unavailable, with the devices that there are, unless this one is there.
void require_present(const Device& device);

}  // namespace gradus
