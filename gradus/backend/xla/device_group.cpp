/// Devices that run one program together.
#include <deque>
#include "gradus/backend/xla/plugin_device.h"

namespace gradus::xla {
namespace {

std::string options_of(const std::vector<PluginDevice*>& devices) {
  std::vector<int> ids;
  for (const PluginDevice* const each : devices) ids.push_back(each->session.id_of(each->handle));
  return pjrt::compile_options(ids, devices.front()->flags);
}

std::vector<Device> names_of(const std::vector<PluginDevice*>& devices) {
  std::vector<Device> names;
  for (const PluginDevice* const each : devices) names.push_back(each->device);
  return names;
}

}  // namespace

DeviceGroup::DeviceGroup(std::vector<PluginDevice*> all)
    : devices(std::move(all)), options(options_of(devices)), names(names_of(devices)) {}

const DeviceGroup& DeviceGroup::of(std::span<PluginDevice* const> devices) {
  if (devices.size() == 1) return devices.front()->alone;
  static auto* guard = new std::mutex;
  static auto* known = new std::deque<DeviceGroup>;
  const std::lock_guard lock(*guard);
  for (const DeviceGroup& each : *known)
    if (std::ranges::equal(each.devices, devices)) return each;
  return known->emplace_back(std::vector<PluginDevice*>(devices.begin(), devices.end()));
}

std::string DeviceGroup::text() const {
  std::string all;
  for (const Device& name : names) all += gradus::text(all.empty() ? "" : ", ", name);
  return all;
}

}  // namespace gradus::xla
