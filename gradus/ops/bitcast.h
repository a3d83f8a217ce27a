/// The same bits as another type.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// The bytes of x read as elements of `dtype`, which is as wide. A boolean is a byte of 0 or 1; no bytes are read as
/// booleans. No gradient.
Tensor bitcast(const Tensor& x, DType dtype);

}  // namespace gradus
