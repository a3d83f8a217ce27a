/// The memory behind a Buffer of a device of a plugin.
#pragma once
#include <mutex>
#include "gradus/backend/xla/plugin_device.h"
#include "gradus/base/rooms.h"
#include "gradus/tensor/buffer.h"

namespace gradus::xla {

class DeviceBuffer final : public DeviceMemory {
 public:
  /// Brought from `host`, which it keeps: spans may show it.
  static Ref<Buffer> from_host(PluginDevice& on, const Ref<Buffer>& host, const Spec& spec);
  /// Made by a run, or copied; `number`: Faults::failure_of() knows by it if its bits are valid.
  static Ref<Buffer> of(std::shared_ptr<const Holding> holding, std::int64_t number);
  static bool is(const Ref<Buffer>& buffer);
  /// InternalError unless `buffer` is of a device of a plugin.
  static DeviceBuffer& in(const Ref<Buffer>& buffer);

  DeviceBuffer(std::shared_ptr<const Holding> holding, Ref<Buffer> mirror, std::int64_t number)
      : on_(holding->on()), holding_(std::move(holding)), mirror_(std::move(mirror)), number_(number) {}

  void wait() const override;
  const void* host() override;

  PluginDevice& on() const { return on_; }
  /// The value as elements of `spec`; throws if it was lost or has failed.
  std::shared_ptr<const Holding> holding(const Spec& spec);
  std::int64_t number() const;
  /// The host's bytes, if they are at hand without waiting.
  Ref<Buffer> mirror() const;
  /// Other bits in its place.
  void replace(std::shared_ptr<const Holding> holding, std::int64_t number);
  /// The bits of another one, which is not used any more.
  void take(const DeviceBuffer& other);
  /// Its bits are gone: from now on it throws `problem`.
  void lose(std::exception_ptr problem);

 private:
  std::shared_ptr<const Holding> valid() const;
  /// Within a handler of pjrt::Refused, which `now` gave: throws it. If the run that was to make `now` has failed, it
  /// is lost; other failures may be tried again.
  [[noreturn]] void refuse(const std::shared_ptr<const Holding>& now, const std::string& what) const;
  PluginDevice& on_;
  mutable std::mutex guard_;  // guards the members below
  std::shared_ptr<const Holding> holding_;
  Ref<Buffer> mirror_;
  std::int64_t number_;
  mutable std::exception_ptr lost_;
};

/// `value` on this device: itself if it lies on it, its copy there if it is replicated, else a transferred one.
Ref<Buffer> brought_to(PluginDevice& on, const Ref<Buffer>& value, const Spec& spec);

/// The error that reads of a value of `spec` throw from now on: the run that was to make it has failed for the reason
/// `why`.
std::exception_ptr lost_value(const std::string& where, const Spec& spec, const std::string& why);

/// Throws for `problem`, an error of a plugin on that device: OutOfMemory if it has no memory for `bytes` that `what`
/// asks for; else itself.
[[noreturn]] void throw_for(std::exception_ptr problem, PluginDevice& on, std::int64_t bytes, const std::string& what);

}  // namespace gradus::xla
