/// Reductions of segments: x: T[places..., inner...], segments: integers [places...] -> [num_segments, inner...].
/// Element s reduces all x[p] with segments[p] = s. Gradients as those of reduce_sum, reduce_max and so on.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// Sum of each segment. Rows of a negative segment are left out. A segment from `num_segments` on is an OutOfRange when
/// the value is observed. An empty segment gives 0.
Tensor unsorted_segment_sum(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// Mean of each segment. Floats. An empty segment gives 0.
Tensor unsorted_segment_mean(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// Sum of each segment, divided by the square root of the number of elements. Floats. An empty segment gives 0.
Tensor unsorted_segment_sqrt_n(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// Product of each segment. An empty segment gives 1.
Tensor unsorted_segment_prod(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// Largest element of each segment. An empty segment gives the lowest finite number of the dtype, as in TensorFlow.
Tensor unsorted_segment_max(const Tensor& x, const Tensor& segments, std::int64_t num_segments);
/// Smallest element of each segment. An empty segment gives the highest finite number of the dtype.
Tensor unsorted_segment_min(const Tensor& x, const Tensor& segments, std::int64_t num_segments);

/// Sum of each segment. Segments are a vector in ascending order, from 0. Its last number gives their count, so it must
/// be known: within a traced function use unsorted_segment_sum. An empty segment gives 0.
Tensor segment_sum(const Tensor& x, const Tensor& segments);
/// Mean of each segment; segments as for segment_sum. An empty segment gives 0.
Tensor segment_mean(const Tensor& x, const Tensor& segments);
/// Product of each segment; segments as for segment_sum. An empty segment gives 1.
Tensor segment_prod(const Tensor& x, const Tensor& segments);
/// Largest element of each segment; segments as for segment_sum. An empty segment gives 0.
Tensor segment_max(const Tensor& x, const Tensor& segments);
/// Smallest element of each segment; segments as for segment_sum. An empty segment gives 0.
Tensor segment_min(const Tensor& x, const Tensor& segments);

}  // namespace gradus
