/// Sorting. Orders are stable: of equal elements (0 and -0 are equal) the first stays first. NaN stands last, ascending
/// or descending. Any dtype. The gradient of an element goes to its position in x.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// Order of sorting.
enum class Direction { ascending, descending };

/// x sorted along `axis`.
Tensor sort(const Tensor& x, int axis = -1, Direction direction = Direction::ascending);
/// The i32 indices along `axis` that sort x.
Tensor argsort(const Tensor& x, int axis = -1, Direction direction = Direction::ascending);
/// Options of sort and argsort.
struct SortOptions {
  int axis = -1;                               // axis to sort along
  Direction direction = Direction::ascending;  // NaN stands last in either
};
inline Tensor sort(const Tensor& x, SortOptions options) { return sort(x, options.axis, options.direction); }
inline Tensor argsort(const Tensor& x, SortOptions options) { return argsort(x, options.axis, options.direction); }

/// Result of top_k.
struct TopK {
  Tensor values, indices;  // the elements, and their i32 indices
};
/// Options of top_k.
struct TopKOptions {
  int axis = -1;        // axis to search
  bool largest = true;  // false: the smallest
};
/// The k largest elements along the last axis, the largest first; equal ones in the order of their indices.
/// InvalidArgument if there are fewer than k.
TopK top_k(const Tensor& x, std::int64_t k);
TopK top_k(const Tensor& x, std::int64_t k, const TopKOptions& options);

/// Position of a value among elements equal to it.
enum class Side { left, right };
/// Insertion points. sorted_sequence: T[batch..., n] in ascending order, values: T[batch..., m] -> out_type
/// [batch..., m]: the index before which each value would be inserted to keep the order. Values go before (left) or
/// after (right) equal elements. NaN stands after every number, as in sort. OutOfRange if out_type does not hold n.
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, Side side = Side::left, DType out_type = i32);

}  // namespace gradus
