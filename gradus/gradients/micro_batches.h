/// Splitting a batch into micro-batches, for gradient accumulation.
#pragma once
#include <array>
#include <iterator>
#include <string_view>
#include "gradus/ops/masked_rows.h"

namespace gradus {

/// An input range of std::array<Tensor, N>: rows [0, size), [size, 2 size) ... of each tensor, with their masks. The
/// last part may be smaller.
template <std::size_t N> struct MicroBatchRange {
  std::array<Tensor, N> batch;      // the tensors to split
  std::int64_t size = 0, rows = 0;  // rows of a part, and of the batch

  /// Walks over the parts.
  struct iterator {
    const MicroBatchRange* range;  // the range it walks over
    std::int64_t begin;            // first row of the part
    std::array<Tensor, N> operator*() const {
      std::array<Tensor, N> part;
      const std::int64_t end = std::min(begin + range->size, range->rows);
      for (std::size_t i = 0; i < N; ++i) part[i] = detail::masked_rows(range->batch[i], begin, end);
      return part;
    }
    iterator& operator++() {
      begin += range->size;
      return *this;
    }
    bool operator!=(std::default_sentinel_t) const { return begin < range->rows; }
  };
  /// The first part.
  iterator begin() const { return {this, 0}; }
  /// The end: after the last part.
  std::default_sentinel_t end() const { return {}; }
};

/// The number of rows that all tensors of a batch share; it may be symbolic. InvalidArgument, opened by `op`, if they
/// differ or one is a scalar.
std::int64_t rows_of_batch(std::string_view op, std::span<const Tensor> batch);

/// rows_of_batch; InvalidArgument if the number is not known while tracing.
std::int64_t known_rows_of_batch(std::string_view op, std::span<const Tensor> batch);

namespace detail {
/// The known number of rows, for parts of `size` rows, which must be positive.
std::int64_t rows_to_divide(std::span<const Tensor> batch, std::int64_t size);
}  // namespace detail

/// Parts of `size` rows of all tensors: for (auto [xb, yb] : micro_batches({x, y}, 8)). InvalidArgument unless `size`
/// is positive and all have the same number of rows, which must be known while tracing, too.
template <std::size_t N> MicroBatchRange<N> micro_batches(const Tensor (&batch)[N], std::int64_t size) {
  MicroBatchRange<N> range;
  for (std::size_t i = 0; i < N; ++i) range.batch[i] = batch[i];
  range.size = size;
  range.rows = detail::rows_to_divide(range.batch, size);
  return range;
}

}  // namespace gradus
