#include "gradus/backend/backend.h"
#include <array>
#include <atomic>
#include "gradus/base/error.h"

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
  Backend* const backend = backends()[static_cast<std::size_t>(kind)].load(std::memory_order_acquire);
  require<Unavailable>(backend != nullptr, "device of kind ", kind, ": no backend serves it; there are ",
                       kinds_served());
  return *backend;
}

void register_backend(DeviceKind kind, Backend& backend, int count) {
  backends()[static_cast<std::size_t>(kind)].store(&backend, std::memory_order_release);
  set_device_count(kind, count);
}

Ref<Buffer> copy_between(const Ref<Buffer>& source, const Device& from, const Device& to) {
  if (from == to) return source;
  return backend_of(to).from_host(to, Buffer::on_host(source));
}

}  // namespace gradus
