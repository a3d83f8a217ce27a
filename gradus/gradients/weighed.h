/// Means of parts as sums.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// A mean, or its gradient, times the weight that it stands for. With weight 0 that is 0, even for NaN.
Tensor weighed(const Tensor& mean, const Tensor& weight);

}  // namespace gradus
