/// Plugins: libraries that drive accelerators, by the PJRT C API. They are found by themselves (docs/accelerators.md),
/// and loaded when a device of theirs is first asked for.
#pragma once
#include <string>
#include <vector>
#include "gradus/tensor/device.h"

namespace gradus {

/// Loads the plugin in the file `path` under a name, by which device_named() and GRADUS_DEVICE know it, and returns its
/// devices. A plugin that is already loaded is not loaded again, and is known by all of its names. Unavailable gives
/// the reason of a failure: no such file, a truncated file, not a plugin, another version of the interface, missing
/// functions, a client that cannot be made. InvalidArgument if another plugin has the name.
std::vector<Device> load_plugin(const std::string& path, const std::string& name);

/// The device of a name: its text ("gpu:0", "cpu:1"), a kind ("gpu", "cuda", "tpu") or a plugin ("xla", "xla:1"), which
/// is loaded if it was not. InvalidArgument if it is no such name, Unavailable if there is no such device.
Device device_named(std::string_view name);

/// All devices of a kind or a plugin, by name: devices("gpu"), devices("xla"). A device's own name gives it alone.
/// Errors as of device_named().
std::vector<Device> devices(std::string_view name);

/// A device of a plugin.
struct PluginDeviceInfo {
  Device device;                 // such as gpu:0
  std::string model;             // as the plugin calls it: "NVIDIA H100 80GB HBM3"
  std::size_t memory_bytes = 0;  // 0: the plugin does not say
};
/// A plugin that was found.
struct PluginInfo {
  std::string name, path;                  // "cuda"; its file
  std::string platform, platform_version;  // "cuda"; as the plugin says it
  std::string api_version;                 // of the PJRT C API: "0.115"
  std::vector<PluginDeviceInfo> devices;   // the devices that this process may use
  std::string problem;                     // not empty: why it cannot be used
};
/// All plugins that are found; loads them.
std::vector<PluginInfo> plugins();

}  // namespace gradus
