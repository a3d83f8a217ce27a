/// Devices of kinds that are looked for when they are first asked for.
#pragma once
#include <string>
#include "gradus/tensor/memory.h"

namespace gradus {

class DeviceFinder {
 public:
  virtual ~DeviceFinder() = default;
  /// Looks for devices of this kind, once, and sets their number.
  virtual void find(DeviceKind kind) = 0;
  /// Why there may be fewer devices of this kind than expected; empty: nothing went wrong.
  virtual std::string problems(DeviceKind kind) const = 0;

  virtual MemoryUse memory_use(const Device& device) = 0;
  virtual void reset_peak_memory(const Device& device) = 0;
  virtual void set_memory_limit(const Device& device, std::size_t bytes) = 0;
};

/// Sets the finder from now on; it stays to the end of the process.
void set_device_finder(DeviceFinder& finder);
/// Null if there is none.
DeviceFinder* device_finder();

/// Looks for devices of this kind, unless that was done.
void find_devices(DeviceKind kind);

/// The content of GRADUS_DEVICE, if it names a plugin rather than a kind: until that is loaded, the default device is
/// plugin:INDEX.
struct AskedDevice {
  std::string name;  // empty: it names a kind, or is not set
  int index = 0;
};
const AskedDevice& asked_device();

}  // namespace gradus
