/// Reinterpreting the bits of a tensor as another dtype.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// The bytes of x as elements of `dtype`, which has the same width. A boolean is a byte of 0 or 1; no bytes can be read
/// as booleans. No gradient.
Tensor bitcast(const Tensor& x, DType dtype);

}  // namespace gradus
