/// A device of a plugin: its place, its memory and its failures.
#pragma once
#include "gradus/backend/xla/device_account.h"
#include "gradus/backend/xla/faults.h"
#include "gradus/backend/xla/pjrt.h"

namespace gradus::xla {

struct PluginDevice;

/// Devices of one plugin that run one program together, a replica each. Mostly it is one.
struct DeviceGroup {
  explicit DeviceGroup(std::vector<PluginDevice*> all);
  DeviceGroup(const DeviceGroup&) = delete;
  /// The one of these devices, which stays to the end of the process.
  static const DeviceGroup& of(std::span<PluginDevice* const> devices);

  const std::vector<PluginDevice*> devices;
  const std::string options;        // of compilations for it
  const std::vector<Device> names;  // of the devices
  PluginDevice& first() const { return *devices.front(); }
  std::size_t size() const { return devices.size(); }
  /// "plugin:0", or "plugin:0, plugin:1".
  std::string text() const;
};

struct PluginDevice {
  PluginDevice(const Device& named, const pjrt::Session& its_session, pjrt::Device* its_handle,
               std::span<const pjrt::Option> its_flags)
      : device(named),
        session(its_session),
        handle(its_handle),
        flags(its_flags.begin(), its_flags.end()),
        alone(std::vector<PluginDevice*>{this}),
        account(named, session.memory_of(handle).limit),
        faults(session, handle) {}

  const Device device;
  const pjrt::Session& session;
  pjrt::Device* const handle;
  const std::vector<pjrt::Option> flags;  // of compilations
  const DeviceGroup alone;                // this device
  DeviceAccount account;
  Faults faults;

  /// A run was started that makes `result`.
  void note_run(const pjrt::BufferOwner& result) {
    pjrt::EventOwner event;
    try {
      event = result.ready();
    } catch (const pjrt::Refused&) { return; }  // readers of the result get the error
    const std::lock_guard lock(guard_);
    std::swap(last_run_, event);
  }
  /// Returns when its work is done, well or not.
  void wait_for_runs() {
    pjrt::EventOwner last;
    {
      const std::lock_guard lock(guard_);
      std::swap(last, last_run_);
    }
    last.wait();
  }

 private:
  std::mutex guard_;
  pjrt::EventOwner last_run_;
};

/// A buffer of a device, in the device's account.
class Holding {
 public:
  /// `origin`: its purpose, for errors about memory.
  Holding(PluginDevice& on, std::shared_ptr<pjrt::BufferOwner> buffer, const Spec& spec, const char* origin);
  Holding(const Holding&) = delete;
  ~Holding() { leave(); }
  /// A run has taken its memory, which others account for now.
  void leave() const {
    if (!std::exchange(has_left_, true)) on_.account.remove(holder_);
  }

  PluginDevice& on() const { return on_; }
  pjrt::BufferOwner& buffer() const { return *buffer_; }
  const Spec& spec() const { return spec_; }

 private:
  PluginDevice& on_;
  const std::shared_ptr<pjrt::BufferOwner> buffer_;
  const Spec spec_;  // names no device
  const DeviceAccount::Holder holder_;
  mutable bool has_left_ = false;
};

}  // namespace gradus::xla
