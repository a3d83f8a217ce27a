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

void register_backend(DeviceKind kind, Backend& backend) {
  backends()[static_cast<std::size_t>(kind)].store(&backend, std::memory_order_release);
}

}  // namespace gradus
