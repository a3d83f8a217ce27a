/// The primitives of indexing by data: reading, adding, and checking. They are library kernels since data decides where
/// they read or write. An index outside its range sets the program's error word (index: the position within the
/// indices, value: the offending index). Nothing is read or written for it.
#pragma once
#include <string>
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: T[outer..., n, inner...], indices: i32 or i64 [places...] -> T[outer..., places..., inner...]: out[o, p, i] =
/// x[o, indices[p], i]. T is any dtype. `axis` is the axis of n, counted from the end of x: there are -1 - axis inner
/// dimensions. Every index must lie in [0, n).
struct Gather {
  static constexpr auto name = "gather";
  static constexpr auto library_kernel = "gather";
  static constexpr bool may_fail = true;
  int axis = -1;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// indices: i32 or i64 [places...], updates: T[outer..., places..., inner...] -> T[outer..., n, inner...]. Starts from
/// zeros and does out[o, indices[p], i] += updates[o, p, i] in ascending order of p, whatever the number of threads. T
/// is a number type. There are -1 - axis inner dimensions. Every index must lie in [0, extent).
struct ScatterAdd {
  static constexpr auto name = "scatter_add";
  static constexpr auto library_kernel = "scatter_add";
  static constexpr bool may_fail = true;
  int axis = -1;
  std::int64_t extent = 0;  // n: a dimension, may be symbolic
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// x: an integer type, any shape -> the same values, all of which must lie in [0, limit).
struct CheckRange {
  static constexpr auto name = "check_range";
  static constexpr auto takes = Takes::integers;
  static constexpr auto library_kernel = "check_range";
  static constexpr bool may_fail = true;
  std::int64_t limit = 0;  // a dimension, may be symbolic
  bool labels = false;     // messages call the values labels instead of indices
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  /// "label" or "index".
  std::string_view subject() const { return labels ? "label" : "index"; }
};

// The compiler replaces a Gather along the first axis by a check and a view (compiler/lookups.h).

/// indices: i32 or i64 -> the same values, all of which must lie in [0, limit). Fails with Gather's words.
struct CheckIndices {
  static constexpr auto name = "check_indices";
  static constexpr auto takes = Takes::integers;
  static constexpr auto library_kernel = "check_indices";
  static constexpr bool may_fail = true;
  std::int64_t limit = 0;  // a dimension, may be symbolic
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// x: T[n, inner...], indices: i32 or i64 [places...], checked before -> the rows x[indices[p]] one after the other, in
/// the shape `shape` of places * inner elements. A view by a table (compiler/steps.h): rows indices[0], indices[1] ...
/// of x are read in place of rows 0, 1, 2 ...
struct IndexedRows {
  static constexpr auto name = "indexed_rows";
  Shape shape;
  Spec infer(Specs in) const;
  View view(const Shape& in, const Shape& out) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// For batching rules. Row r of `indices`, [rows, places...], points into blocks of n elements. The blocks of all rows,
/// [rows, outer...], lie one after the other as one dimension. Returns the indices into that dimension, [rows,
/// outer..., places...].
Tensor offset_by_row(const Tensor& indices, const Shape& rows_and_outer, std::int64_t n);
/// The shape with all dimensions but the last `inner` merged to one.
Shape merged(const Shape& shape, int inner);

/// `x` with the promise that a value outside [0, limit) ends the program with an OutOfRange that names it.
Tensor check_range(const Tensor& x, std::int64_t limit, bool labels);

}  // namespace gradus
