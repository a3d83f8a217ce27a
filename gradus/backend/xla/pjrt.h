/// PJRT: a plugin's C API with owners, and with exceptions for its errors.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "gradus/backend/xla/pjrt_api.h"
#include "gradus/base/error.h"
#include "gradus/tensor/shape.h"

namespace gradus::pjrt {

/// A plugin has refused a call.
class Refused : public Unavailable {
 public:
  Refused(Code code, const std::string& message) : Unavailable(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

/// Arguments with all fields 0 but their size.
template <class Arguments> Arguments arguments() {
  Arguments made{};
  made.head.struct_size = sizeof(Arguments);
  return made;
}

struct Option {
  std::string name;
  std::variant<std::string, std::int64_t, float, bool> value;
};

/// A library that was loaded; it stays to the end of the process.
class Plugin {
 public:
  /// Unavailable if the file does not exist, is truncated, cannot be loaded, is no plugin, has another version, or
  /// lacks functions that every program needs.
  Plugin(std::string name, std::string path);
  Plugin(const Plugin&) = delete;

  const Api& api() const { return *api_; }
  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  /// "0.115"
  std::string api_version() const;
  /// Throws the error, if it is one, and frees it.
  void check(Error* error, const char* what) const;
  /// The exception for an error, which it frees; null if there is none.
  std::exception_ptr exception_of(Error* error, const char* what) const;
  /// True if the plugin's table reaches to this function.
  template <class F> bool has(F Api::* function) const {
    const auto* place = reinterpret_cast<const char*>(&(api().*function));
    return place + sizeof(F) <= reinterpret_cast<const char*>(api_) + api().head.struct_size && api().*function;
  }

  /// Throws Refused unless the plugin has this function, which few programs need; `name` is the C API's.
  template <class F> void require_function(F Api::* function, const char* name) const {
    if (!has(function)) throw Refused(Code::unimplemented, text("plugin ", name_, ": it has no function ", name));
  }

 private:
  const std::string name_, path_;
  const Api* api_ = nullptr;
};

/// Something that will have happened.
class EventOwner {
 public:
  EventOwner() = default;
  EventOwner(const Plugin& plugin, Event* event) : plugin_(&plugin), event_(event) {}
  EventOwner(EventOwner&& other) noexcept : plugin_(other.plugin_), event_(std::exchange(other.event_, nullptr)) {}
  EventOwner& operator=(EventOwner&& other) noexcept;
  ~EventOwner();

  /// Returns when it has happened; throws the error that prevented it.
  void wait() const;
  /// `kept` lives until then.
  void keep(std::shared_ptr<const void> kept) &&;

 private:
  const Plugin* plugin_ = nullptr;
  Event* event_ = nullptr;  // null: it has
};

class BufferOwner {
 public:
  BufferOwner(const Plugin& plugin, Buffer* buffer) : plugin_(plugin), buffer_(buffer) {}
  BufferOwner(const BufferOwner&) = delete;
  ~BufferOwner();

  Buffer* get() const { return buffer_; }
  EventOwner ready() const;
  /// A run has taken its memory.
  bool is_deleted() const;
  /// The run that was to make it has failed. Waits until that is known.
  bool has_failed() const;
  /// Its elements, row-major, to `destination`.
  EventOwner read(const Spec& spec, void* destination, std::size_t bytes) const;
  std::shared_ptr<BufferOwner> copy_to(Device* device) const;

 private:
  const Plugin& plugin_;
  Buffer* const buffer_;
};

/// Code for one device, or for several that run it together, loaded.
class Loaded {
 public:
  Loaded(const Plugin& plugin, LoadedExecutable* executable) : plugin_(plugin), executable_(executable) {}
  Loaded(const Loaded&) = delete;
  ~Loaded();

  /// Starts a run. `kept`: arguments whose memory no result takes, whatever the text says. Several devices have equally
  /// many arguments, those of the first device first, and `results` results each.
  std::vector<std::shared_ptr<BufferOwner>> run(std::span<Buffer* const> arguments, std::span<const std::int64_t> kept,
                                                std::size_t results, std::size_t devices = 1) const;
  /// Bytes of temporaries; 0 if the plugin does not know.
  std::int64_t temporary_bytes() const;
  std::int64_t code_bytes() const;
  /// Code that may be loaded again; empty if the plugin cannot.
  std::string serialized() const;

 private:
  ExecutableMemoryStats memory() const;
  const Plugin& plugin_;
  LoadedExecutable* const executable_;
};

struct MemoryNumbers {
  std::int64_t in_use = 0, peak = 0, limit = 0;  // 0: not known
};

/// A client of a plugin, with its devices. It stays to the end of the process.
class Session {
 public:
  /// Refused if the plugin cannot make one.
  Session(const Plugin& plugin, std::span<const Option> options);

  const Plugin& plugin() const { return plugin_; }
  const std::string& platform() const { return platform_; }
  const std::string& platform_version() const { return platform_version_; }
  std::span<Device* const> devices() const { return devices_; }
  int id_of(Device* device) const;
  std::string description_of(Device* device) const;
  MemoryNumbers memory_of(Device* device) const;

  std::shared_ptr<BufferOwner> upload(Device* device, const Spec& spec, const void* data, EventOwner& done) const;
  std::unique_ptr<Loaded> compile(const std::string& text, const std::string& options) const;
  std::unique_ptr<Loaded> load(const std::string& serialized, const std::string& options) const;

 private:
  const Plugin& plugin_;
  Client* client_ = nullptr;
  std::string platform_, platform_version_;
  std::vector<Device*> devices_;
};

/// CompileOptionsProto for a program that runs a replica on each of these devices.
std::string compile_options(std::span<const int> device_ids, std::span<const Option> flags = {});

Type type_of(DType dtype);

}  // namespace gradus::pjrt
