#include "gradus/tensor/device.h"
#include <atomic>
#include <charconv>
#include "gradus/base/error.h"

namespace gradus {
namespace {

constexpr std::array<std::string_view, device_kinds.size()> kind_names{"cpu", "gpu", "tpu", "plugin"};

constinit std::array<std::atomic<int>, device_kinds.size()> counts{1, 0, 0, 0};

int count_of(DeviceKind kind) { return counts[static_cast<std::size_t>(kind)].load(std::memory_order_acquire); }

std::string present() {
  std::string all;
  for (const DeviceKind kind : device_kinds)
    for (const Device& device : devices(kind)) all += text(all.empty() ? "" : ", ", device);
  return all;
}

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

void require_present(const Device& device) {
  if (device.kind == DeviceKind::cpu) {
    require(device.index >= 0 && device.index < Device::most, "cpu: the index of a logical device is 0 to ",
            Device::most - 1, ", given ", device.index);
    return;
  }
  require<Unavailable>(device.index >= 0 && device.index < count_of(device.kind), "device ", device,
                       ": there is none such; there are ", present(), ", and cpu:1 to cpu:", Device::most - 1,
                       ", which share the processor");
}

void set_device_count(DeviceKind kind, int count) {
  counts[static_cast<std::size_t>(kind)].store(std::min(count, Device::most), std::memory_order_release);
}

Device default_device() { return DeviceScope::current().physical(); }
void set_default_device(const Device& device) {
  require_present(device);
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

DeviceScope::DeviceScope(const Device& device) : before_(current_) {
  require_present(device);
  current_ = device;
}

}  // namespace gradus
