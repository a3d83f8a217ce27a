#include "gradus/data/on_processor.h"

namespace gradus {

Tensor on_processor(const Tensor& x) {
  if (x.device().kind == DeviceKind::cpu) return x;
  return Tensor::of_buffer({x.dtype(), x.shape(), Device{}}, x.host_buffer());
}

Tensors on_processor(In tensors) {
  Tensors there;
  for (const Tensor& x : tensors) there.push_back(on_processor(x));
  return there;
}

}  // namespace gradus
