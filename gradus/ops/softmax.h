/// The softmax family, without overflow for any finite input. Floats give their own dtype. InvalidArgument for another
/// dtype and for a scalar, OutOfRange for an axis that x does not have.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// exp(x) / sum(exp(x)) along `axis`. A row of -inf gives NaN.
Tensor softmax(const Tensor& x, int axis = -1);
inline Tensor softmax(const Tensor& x, NamedAxis named) { return softmax(x, named.axis); }
/// softmax over the elements where `mask` holds: bool, broadcasts to x. Masked elements give 0 even if they are NaN or
/// infinite, and so do rows without any other; their gradient is 0. InvalidArgument for another mask.
Tensor masked_softmax(const Tensor& x, const Tensor& mask, int axis = -1);
inline Tensor masked_softmax(const Tensor& x, const Tensor& mask, NamedAxis named) {
  return masked_softmax(x, mask, named.axis);
}
/// log(softmax(x)) along `axis`, exact also where softmax rounds to 0.
Tensor log_softmax(const Tensor& x, int axis = -1);
inline Tensor log_softmax(const Tensor& x, NamedAxis named) { return log_softmax(x, named.axis); }

}  // namespace gradus
