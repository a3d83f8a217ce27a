/// The plugins that are loaded, and their devices.
#pragma once
#include "gradus/backend/plugin.h"
#include "gradus/backend/xla/plugin_device.h"

namespace gradus::xla {

/// Unavailable if there is no such device.
PluginDevice& device_of_plugin(const Device& device);
/// The devices of a kind that exist now.
std::vector<PluginDevice*> devices_of_plugins(DeviceKind kind);

}  // namespace gradus::xla
