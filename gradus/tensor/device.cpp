#include "gradus/tensor/device.h"
#include <atomic>
#include <charconv>
#include <cstdlib>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"
#include "gradus/tensor/device_finder.h"

namespace gradus {
namespace {

constexpr std::array<std::string_view, device_kinds.size()> kind_names{"cpu", "gpu", "tpu", "plugin"};

constexpr int unknown = -1;  // not looked for yet
constinit std::array<std::atomic<int>, device_kinds.size()> counts{1, unknown, unknown, unknown};
constinit std::atomic<DeviceFinder*> finder{nullptr};

std::atomic<int>& place_of(DeviceKind kind) { return counts[static_cast<std::size_t>(kind)]; }
int count_of(DeviceKind kind) {
  find_devices(kind);
  return std::max(0, place_of(kind).load(std::memory_order_acquire));
}

/// The devices found; nothing is loaded for a message.
std::string present() {
  std::string all;
  for (const DeviceKind kind : device_kinds)
    for (int i = 0; i < place_of(kind).load(std::memory_order_acquire); ++i)
      all += text(all.empty() ? "" : ", ", Device{kind, i});
  return all;
}

/// While GRADUS_DEVICE is read: the device is looked for when it is first used.
constinit bool is_starting = false;

Device present_device(DeviceKind kind, int index) {
  const Device device{kind, index};
  require_present(device);
  return device;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, DeviceKind kind) {
  return out << kind_names[static_cast<std::size_t>(kind)];
}
std::ostream& operator<<(std::ostream& out, const Device& device) {
  return out << kind_names[static_cast<std::size_t>(device.kind)] << text(':', device.index);
}
std::ostream& operator<<(std::ostream& out, Placement placement) {
  return placement.is_named() ? out << '@' << placement.device() : out;
}

Device cpu(int index) { return present_device(DeviceKind::cpu, index); }
Device gpu(int index) { return present_device(DeviceKind::gpu, index); }
Device cuda(int index) { return gpu(index); }
Device tpu(int index) { return present_device(DeviceKind::tpu, index); }

std::vector<Device> devices(DeviceKind kind) {
  std::vector<Device> all;
  for (int i = 0; i < count_of(kind); ++i) all.push_back({kind, i});
  return all;
}

void detail::require_present(const Device& device) {
  if (device.kind == DeviceKind::cpu) {
    require(device.index >= 0 && device.index < Device::most, "cpu: the index of a logical device is 0 to ",
            Device::most - 1, ", given ", device.index);
    return;
  }
  require<Unavailable>(device.index >= 0 && device.index < count_of(device.kind), "device ", device,
                       ": there is none such; there are ", present(), ", and cpu:1 to cpu:", Device::most - 1,
                       ", which share the processor", device_finder() ? device_finder()->problems(device.kind) : "");
}

void detail::set_device_count(DeviceKind kind, int count) {
  place_of(kind).store(std::min(count, Device::most), std::memory_order_release);
}

void set_device_finder(DeviceFinder& found) { finder.store(&found, std::memory_order_release); }
DeviceFinder* device_finder() { return finder.load(std::memory_order_acquire); }

void find_devices(DeviceKind kind) {
  DeviceFinder* const to_ask = device_finder();
  if (!to_ask || place_of(kind).load(std::memory_order_acquire) != unknown) [[likely]]
    return;
  to_ask->find(kind);
  int still = unknown;
  place_of(kind).compare_exchange_strong(still, 0, std::memory_order_acq_rel);  // there is none
}

Device default_device() { return DeviceScope::current().physical(); }
void set_default_device(const Device& device) {
  if (!is_starting) require_present(device);
  Placement::process_code_.store(Placement(device).code(), std::memory_order_release);
}

Device device_from_text(std::string_view written) {
  const std::size_t colon = written.find(':');
  const std::string_view name = written.substr(0, colon);
  for (const DeviceKind kind : device_kinds) {
    if (colon == std::string_view::npos || name != kind_names[static_cast<std::size_t>(kind)]) continue;
    const std::string_view number = written.substr(colon + 1);
    int index = -1;
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (problem == std::errc() && end == number.data() + number.size() && index >= 0 && index < Device::most)
      return {kind, index};
  }
  throw InvalidArgument(text('`', written, "` is not a device such as cpu:1"));
}

namespace {

AskedDevice& asked() {
  static AskedDevice device;
  return device;
}

/// GRADUS_DEVICE: a kind or a plugin, with or without a number.
const bool has_read_environment = [] {
  const char* const written = std::getenv("GRADUS_DEVICE");
  if (!written || !*written) return false;
  const std::string_view all = written, name = all.substr(0, all.find(':'));
  int index = 0;
  if (name.size() < all.size()) {
    const auto [end, problem] = std::from_chars(all.data() + name.size() + 1, all.data() + all.size(), index);
    if (problem != std::errc() || end != all.data() + all.size() || index < 0 || index >= Device::most) index = -1;
  }
  Device device{DeviceKind::plugin, std::max(0, index)};
  bool is_kind = false;
  for (const DeviceKind kind : device_kinds)
    if (name == kind_names[static_cast<std::size_t>(kind)]) device.kind = kind, is_kind = true;
  if (name == "cuda") device.kind = DeviceKind::gpu, is_kind = true;
  if (index < 0) device = {DeviceKind::plugin, Device::most - 1};  // reported when that is looked for
  if (index < 0 || !is_kind) asked() = {std::string(index < 0 ? all : name), std::max(0, index)};
  is_starting = true;
  set_default_device(device);
  is_starting = false;
  return true;
}();

}  // namespace

const AskedDevice& asked_device() { return asked(); }

DeviceScope::DeviceScope(const Device& device) : before_(current_) {
  require_present(device);
  current_ = device;
}

}  // namespace gradus
