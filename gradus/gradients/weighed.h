/// Means of parts as sums.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// A mean, or its gradient, times the weight that it stands for: of weight 0 that is 0, even of NaN.
Tensor weighed(const Tensor& mean, const Tensor& weight);

}  // namespace gradus
