/// Devices, on which tensors live and are computed. cpu(1), cpu(2) ... are logical devices that share the processor.
/// Each has its own share of the threads and its own account of memory, so one machine can test programs for many
/// devices.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <ostream>
#include <vector>
#include "gradus/base/kept_on_thread.h"

namespace gradus {

/// The kinds of devices. cuda is another name of gpu. plugin is any device that an out-of-tree backend drives.
enum class DeviceKind : std::uint8_t { cpu, gpu, tpu, plugin, cuda = gpu };
/// All kinds.
inline constexpr std::array device_kinds{DeviceKind::cpu, DeviceKind::gpu, DeviceKind::tpu, DeviceKind::plugin};
/// Prints the kind, such as "cpu".
std::ostream& operator<<(std::ostream& out, DeviceKind kind);

/// The name of a device, such as cpu:0. The device need not exist: using it is then an Unavailable.
struct Device {
  static constexpr int most = 63;     // devices of a kind
  DeviceKind kind = DeviceKind::cpu;  // its kind
  int index = 0;                      // its number among those of the kind, from 0
  bool operator==(const Device&) const = default;
  /// Prints the name, such as "cpu:0".
  friend std::ostream& operator<<(std::ostream& out, const Device& device);
};

/// A logical device of the processor. InvalidArgument unless 0 <= index < 63.
Device cpu(int index = 0);
/// A GPU. Unavailable, which lists the existing devices, if the machine does not have it or the library has no backend
/// for it.
Device gpu(int index = 0);
/// Another name of gpu().
Device cuda(int index = 0);
/// A TPU; Unavailable as for gpu().
Device tpu(int index = 0);

/// The physical devices of a kind; empty if there are none. Logical devices of the processor are not listed.
std::vector<Device> devices(DeviceKind kind);

/// The device on which new tensors and Variables live: that of the innermost DeviceScope of this thread, else that of
/// set_default_device, else the processor.
Device default_device();
/// Sets the default device of the whole process. Existing tensors stay where they are. Unavailable if the device does
/// not exist.
void set_default_device(const Device& device);

/// Reads the name of a device, such as "cpu:1"; InvalidArgument for anything else.
Device device_from_text(std::string_view text);

/// The device of a spec, or none, in one byte. A tensor without a named device is *uncommitted*: it lives on the
/// default device, and moves to the device of another operand. Only Tensor::to brings tensors on two named devices
/// together.
class Placement {
 public:
  constexpr Placement() = default;
  constexpr Placement(const Device& device)
      : code_(static_cast<std::uint8_t>(1 + static_cast<int>(device.kind) * Device::most + device.index)) {}
  /// True if it names a device.
  constexpr bool is_named() const { return code_ != 0; }
  /// The device that it names.
  constexpr Device device() const {
    return {static_cast<DeviceKind>((code_ - 1) / Device::most), (code_ - 1) % Device::most};
  }
  /// The placement as a number, for keys; 0 if no device is named.
  constexpr std::uint8_t code() const { return code_; }
  /// This placement, or the default device of the process if none is named.
  Placement resolved() const {
    Placement there = *this;
    if (!is_named()) there.code_ = process_code_.load(std::memory_order_acquire);
    return there;
  }
  /// The named device, or the default device of the process.
  Device physical() const { return resolved().device(); }
  bool operator==(const Placement&) const = default;
  /// Prints "@cpu:1", or nothing if no device is named.
  friend std::ostream& operator<<(std::ostream& out, Placement placement);

 private:
  friend void set_default_device(const Device& device);
  [[gnu::visibility("default")]] static inline constinit std::atomic<std::uint8_t> process_code_{1};  // cpu:0
  std::uint8_t code_ = 0;
};
static_assert(Placement(Device{}).code() == 1);

/// While it lives, this thread computes on `device`, and new tensors and Variables live there. Operands that are on
/// other devices are copied, with gradients. Scopes nest. A scope must be destroyed on the thread that made it;
/// elsewhere that prints a notice and changes nothing.
class DeviceScope {
 public:
  /// Unavailable, which lists the existing devices, if `device` does not exist.
  [[nodiscard]] explicit DeviceScope(const Device& device);
  explicit DeviceScope(const char*) = delete;  // devices are objects: DeviceScope scope(gpu(0))
  ~DeviceScope() {
    if (!before_.give_back(current_))
      detail::notice_end_elsewhere("a DeviceScope", "goes on computing on the scope's device");
  }
  DeviceScope(const DeviceScope&) = delete;

  // For the rooms of the library.
  /// A scope of `placement`. If it names no device, no scope is in effect.
  [[nodiscard]] explicit DeviceScope(Placement placement) : before_(current_) { current_ = placement; }
  static Placement current() { return current_; }

 private:
  [[gnu::tls_model("initial-exec"),
    gnu::visibility("default")]] static inline constinit thread_local Placement current_{};
  const detail::KeptOnThread<Placement> before_;
};

namespace detail::inline rooms {

/// Sets the number of devices of this kind.
void set_device_count(DeviceKind kind, int count);
/// Unavailable, which lists the existing devices, unless this one is present.
void require_present(const Device& device);

}  // namespace detail::inline rooms

}  // namespace gradus
