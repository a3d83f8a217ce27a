/// The softmax family, without overflow for any finite input. Floats give their own dtype. InvalidArgument for another
/// dtype and for a scalar, OutOfRange for an axis that x does not have.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// exp(x) / sum(exp(x)) along `axis`. A row of -inf gives NaN.
Tensor softmax(const Tensor& x, int axis = -1);
/// softmax over the elements where `mask` holds: bool, broadcasts to x. All others give 0, whatever they are, and so
/// does a row without any; their gradient is 0. InvalidArgument for another mask.
Tensor masked_softmax(const Tensor& x, const Tensor& mask, int axis = -1);
/// log(softmax(x)) along `axis`, exact also where softmax rounds to 0.
Tensor log_softmax(const Tensor& x, int axis = -1);

}  // namespace gradus
