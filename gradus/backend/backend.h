/// Backend: a kind of device as the rest of the library sees it. It compiles graphs and predicts their needs. function/
/// and gradients/ know devices by this interface alone.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include "gradus/backend/compile_options.h"
#include "gradus/backend/executable.h"
#include "gradus/base/rooms.h"
#include "gradus/tensor/device.h"

namespace gradus {

class Backend {
 public:
  virtual ~Backend() = default;

  /// Thread-safe. The graph is of one device and names none, so that one executable serves all devices of the kind.
  /// ResourceExhausted, naming the smallest that works, if the budget of the options is too small.
  virtual std::shared_ptr<const Executable> compile(Graph graph, const CompileOptions& options = {}) = 0;

  /// The same as one executable that runs a replica on each of these devices: all_reduce and all_gather in the graph
  /// join all of them. Inputs and outputs of a run are ReplicatedValues on them.
  virtual std::shared_ptr<const Executable> compile_on_replicas(Graph graph, const CompileOptions& options,
                                                                std::span<const Device> replicas);
  /// Why there is no such executable for these devices; empty: there is.
  virtual std::string why_no_replicas(std::span<const Device>) { return "they have no collectives"; }

  /// Bytes besides its outputs that an executable of `graph` will need for these symbols: about, and rather more.
  virtual std::int64_t planned_bytes(Graph graph, std::span<const std::int64_t> symbols = {}) = 0;

  /// The numbers by which passes decide, for explain(); none where a compiler of the device's own decides.
  virtual std::optional<TargetModel> target() const { return {}; }

  /// Memory of `device` with the bytes of `host`, a buffer of the host that is not written any more. They are elements
  /// of `spec`, whose sizes are known.
  virtual Ref<Buffer> from_host(const Device& device, const Ref<Buffer>& host, const Spec& spec) = 0;
  /// Memory of `to` with the bytes of `source`: itself, if it is on `to` already; another device, or the host, may have
  /// it.
  virtual Ref<Buffer> from_device(const Device& to, const Ref<Buffer>& source, const Spec& spec) {
    return from_host(to, Buffer::on_host(source), spec);
  }
  /// Returns when all devices have done their work. Throws the errors that arose there, if no caller has received them
  /// yet.
  virtual void synchronize() {}
};

/// The bits of `source`, elements of `spec` on `from`, on another device. Waits for pending work on them.
Ref<Buffer> copy_between(const Ref<Buffer>& source, const Device& from, const Device& to, const Spec& spec);
/// Backend::synchronize() of all backends in use.
void synchronize_devices();

/// The one that serves devices of this kind. Unavailable, with the kinds that there are, if none does.
Backend& backend_of(DeviceKind kind);
inline Backend& backend_of(const Device& device) { return backend_of(device.kind); }

/// Makes a backend of `count` devices known, for as long as the process lives; it replaces one that served the kind
/// before.
void register_backend(DeviceKind kind, Backend& backend, int count);

}  // namespace gradus
