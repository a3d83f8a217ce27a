#include "gradus/function/resident.h"
#include "gradus/backend/backend.h"

namespace gradus {

Ref<Buffer> resident(const Tensor& x) {
  Ref<Buffer> value(&x.observed());
  const Device device = x.device();
  if (device.kind == DeviceKind::cpu || value->device_memory()) return value;
  // Its memory there keeps the host's, which spans may show.
  Ref<Buffer> there = backend_of(device).from_host(device, value, x.spec());
  // Of threads that do this side by side one wins: its memory keeps the host's alive, which others still look at.
  ValueCell& cell = x.node()->value;
  return cell.replace(*value, there) ? there : Ref<Buffer>(cell.get());
}

}  // namespace gradus
