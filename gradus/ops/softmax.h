/// The softmax family, without overflow for any finite input. Floats give their own dtype; InvalidArgument for another
/// dtype and for a scalar, OutOfRange for an axis that x does not have.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// exp(x) / sum(exp(x)) along `axis`. A row of -inf gives NaN.
Tensor softmax(const Tensor& x, int axis = -1);
/// log(softmax(x)) along `axis`, exact also where softmax rounds to 0.
Tensor log_softmax(const Tensor& x, int axis = -1);

}  // namespace gradus
