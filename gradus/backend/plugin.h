/// Plugins: libraries that drive accelerators, by the PJRT C API. The library finds them (docs/accelerators.md) and
/// loads each when one of its devices is first asked for.
#pragma once
#include <string>
#include <vector>
#include "gradus/tensor/device.h"

namespace gradus {

/// Loads the plugin in the file `path` under `name`, which device_named() and GRADUS_DEVICE take, and returns its
/// devices. A plugin that is already loaded is not loaded again, and answers to all of its names. Unavailable gives the
/// reason of a failure: no such file, a truncated file, not a plugin, another version of the interface, missing
/// functions, a client that cannot be made. InvalidArgument if another plugin has the name.
std::vector<Device> load_plugin(const std::string& path, const std::string& name);

/// The device of a name: its text ("gpu:0", "cpu:1"), a kind ("gpu", "cuda", "tpu") or a plugin ("xla", "xla:1"), which
/// is loaded if necessary. InvalidArgument for another form of name, Unavailable if there is no such device.
Device device_named(std::string_view name);

/// All devices of a kind or a plugin, by name: devices("gpu"), devices("xla"). The name of one device gives that device
/// alone. Errors as of device_named().
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
