/// Rows of logits as logarithms of probabilities, with their limits. One infinite logit takes all the probability.
/// Several have no limit, so their rows are NaN.
#pragma once
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/special.h"

namespace gradus {

/// Parts of a softmax along `axis`, which is kept: shifted = x - max(x), sum = sum(exp(shifted)), log_sum = log(sum).
struct LogitRows {
  Tensor shifted, sum, log_sum;

  explicit LogitRows(const Tensor& x, int axis = -1) {
    const ReduceOptions along{.axis = {axis}, .keepdims = true};
    const Tensor largest = stop_gradient(reduce_max(x, along));
    shifted = minus_largest(x, largest);
    const Tensor counted = reduce_sum(exp(shifted), along), one = fill_like(counted, 1);  // infinite ones count 1 each
    const Tensor is_several = logical_and(is_inf(largest), one < counted);
    sum = counted * where(is_several, fill_like(counted, std::numeric_limits<double>::quiet_NaN()), one);
    log_sum = log(sum);
  }
};

/// log(softmax(x)) with those limits. Narrow floats are computed in f32 and rounded once.
inline Tensor log_shares(const Tensor& x, int axis = -1) {
  return in_computed_dtype(x, [&](const Tensor& wide) {
    const LogitRows rows(wide, axis);
    return rows.shifted - rows.log_sum;
  });
}

}  // namespace gradus
