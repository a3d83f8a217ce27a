/// Reductions of segments: x: T[places..., inner...] and segments: integers [places...] -> [num_segments, inner...],
/// where element s is made of all x[p] whose segments[p] is s. Gradients as those of reduce_sum, reduce_max and so on.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// Rows of a negative segment are left out; a segment from `num_segments` on is an OutOfRange when the value is
/// observed. A segment of nothing is 0.
Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// Floats. A segment of nothing is 0.
Tensor unsorted_segment_mean(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// The sum divided by the square root of the number of elements. Floats. A segment of nothing is 0.
Tensor unsorted_segment_sqrt_n(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// A segment of nothing is 1.
Tensor unsorted_segment_prod(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// A segment of nothing is the lowest finite number of the dtype, as in TensorFlow.
Tensor unsorted_segment_max(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// A segment of nothing is the highest finite number of the dtype.
Tensor unsorted_segment_min(const Tensor& x, const Tensor& segments, std::int64_t num_segments);

/// Segments: a vector in ascending order, from 0; as many as its last number says, so it must be known: within a
/// function that is traced use the above. A segment of nothing is 0, the product 1.
Tensor segment_sum(const Tensor& x, const Tensor& segments);
Tensor segment_mean(const Tensor& x, const Tensor& segments);
Tensor segment_prod(const Tensor& x, const Tensor& segments);
Tensor segment_max(const Tensor& x, const Tensor& segments);
Tensor segment_min(const Tensor& x, const Tensor& segments);

}  // namespace gradus
