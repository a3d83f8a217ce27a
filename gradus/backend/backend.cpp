#include "gradus/backend/backend.h"
#include <array>
#include <atomic>
#include "gradus/base/error.h"
#include "gradus/tensor/device_finder.h"

namespace gradus {
namespace {

using Backends = std::array<std::atomic<Backend*>, device_kinds.size()>;
Backends& backends() {
  static Backends all{};
  return all;
}

std::string kinds_served() {
  std::string names;
  for (const DeviceKind kind : device_kinds)
    if (backends()[static_cast<std::size_t>(kind)]) names += (names.empty() ? "" : ", ") + text(kind);
  return names;
}

}  // namespace

Backend& backend_of(DeviceKind kind) {
  const std::atomic<Backend*>& place = backends()[static_cast<std::size_t>(kind)];
  Backend* backend = place.load(std::memory_order_acquire);
  if (!backend) [[unlikely]] {
    find_devices(kind);
    backend = place.load(std::memory_order_acquire);
  }
  if (!backend) [[unlikely]]  // the words are made where they are needed alone
    throw Unavailable(text("device of kind ", kind, ": there is none; there are those of kind ", kinds_served(),
                           device_finder() ? device_finder()->problems(kind) : ""));
  return *backend;
}

void register_backend(DeviceKind kind, Backend& backend, int count) {
  backends()[static_cast<std::size_t>(kind)].store(&backend, std::memory_order_release);
  set_device_count(kind, count);
}

std::shared_ptr<const Executable> Backend::compile_on_replicas(Graph, const CompileOptions&,
                                                               std::span<const Device> replicas) {
  throw InternalError(text("internal fault: devices such as ", replicas.front(), " run no program together"));
}

Ref<Buffer> copy_between(const Ref<Buffer>& source, const Device& from, const Device& to, const Spec& spec) {
  if (from == to) return source;
  Backend& backend = backend_of(to);
  if (from.kind == to.kind && source->device_memory()) return backend.from_device(to, source, spec);
  return backend.from_host(to, Buffer::on_host(source), spec);
}

void synchronize_devices() {
  for (auto& backend : backends())
    if (Backend* const there = backend.load(std::memory_order_acquire)) there->synchronize();
}

}  // namespace gradus
