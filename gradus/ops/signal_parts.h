/// Parts that the transforms of signals share.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// The first n elements of the last axis, of known length, zero-padded where there are fewer.
Tensor fitted(const Tensor& x, std::int64_t n);

}  // namespace gradus
