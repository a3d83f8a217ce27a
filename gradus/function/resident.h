/// Resident values: those in memory that their device can use.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// The value of `x`, in memory of its device: a value made on the host is transferred, once.
Ref<Buffer> resident(const Tensor& x);

}  // namespace gradus
