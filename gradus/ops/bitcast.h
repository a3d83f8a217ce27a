/// Reinterpreting the bits of a tensor as another dtype, and the neighbours of floats, which follow from their bits.
#pragma once
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// The bytes of x as elements of `dtype`, as tf.bitcast. Elements k times as wide become k elements along a new last
/// dimension, the lowest bytes first; if they are k times narrower, the last dimension, which has to be k, becomes one
/// element. A boolean is a byte of 0 or 1; no bytes can be read as booleans. No gradient.
Tensor bitcast(const Tensor& x, DType dtype);

/// The float next to x towards y: y if they are equal, NaN if one is NaN. Next to 0 it is the least subnormal number,
/// which arithmetic treats as 0. No gradient.
Tensor nextafter(const NumberOrTensor& x, const NumberOrTensor& y);

}  // namespace gradus
