#include "gradus/function/resident.h"
#include "gradus/backend/backend.h"

namespace gradus {

Ref<Buffer> resident(const Tensor& x) {
  Ref<Buffer> value(&x.observed());
  const Device device = x.device();
  if (device.kind == DeviceKind::cpu || value->device_memory()) return value;
  // Its memory there keeps the host's, which spans may show.
  Ref<Buffer> there = backend_of(device).from_host(device, value, x.spec());
  // One of several uploading threads wins. Its memory keeps the host's alive, which the others still read.
  ValueCell& cell = x.node()->value;
  return cell.replace(*value, there) ? there : Ref<Buffer>(cell.get());
}

}  // namespace gradus
