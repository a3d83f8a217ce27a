/// The types of indices and counts. Every op that returns them checks the largest possible number, an extent, against
/// the type of the result.
#pragma once
#include <limits>
#include "gradus/ops/checks.h"

namespace gradus {

/// The type in which an op computes indices, or counts, up to `most`: i32 if it holds them, else i64. An open extent
/// gives i32, since a program is the same for all sizes; a call with more elements gets a program of its own.
/// InvalidArgument unless `asked`, the type of the result, is an integer type; OutOfRange unless it holds `most`, an
/// extent, symbolic or not, or an extent less one.
inline DType index_type(std::string_view op, DType asked, std::int64_t most) {
  require(is_integer(asked), op,
          ": expected an integer type for indices (output_type, out_type, out_idx or dtype), got ", asked);
  require_held(op, asked, most);
  if (most < 0) require_held(op, i32, most);
  return most > std::numeric_limits<std::int32_t>::max() ? i64 : i32;
}

/// argmax and argmin with i32 or i64 indices.
Tensor argmax_as(const Tensor& x, int axis, DType index_type);
Tensor argmin_as(const Tensor& x, int axis, DType index_type);

}  // namespace gradus
