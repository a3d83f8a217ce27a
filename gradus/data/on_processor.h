/// Elements are made by the processor, whatever device computes with them.
#pragma once
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// `x` in the processor's memory, on the processor where that is not the default device. No copy of what was made
/// there.
Tensor on_processor(const Tensor& x);
Tensors on_processor(In tensors);

/// In its lifetime this thread computes on the processor, where that is not the default device.
class OnProcessor {
 public:
  [[nodiscard]] OnProcessor() {
    if (default_device().kind != DeviceKind::cpu) scope_.emplace(Device{});
  }

 private:
  std::optional<DeviceScope> scope_;
};

}  // namespace gradus
