/// Low rank: one Dense as two thin ones, whose product is the nearest to its kernel (Eckart and Young 1936).
#pragma once
#include <cstdint>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"
#include "gradus/nn/layers.h"

namespace gradus {

/// x = left diag(values) right: singular values descending, [n]; left: [rows, n], right: [n, columns], n the smaller
/// extent. Columns of `left` and rows of `right` are orthonormal where values are above 0.
struct SingularValues {
  Tensor values, left, right;  // f64
};
/// Of a matrix of floats, on the host in f64 by one-sided Jacobi rotations (Hestenes 1958; Demmel and Veselic 1992):
/// every value to about 1e-15 of the largest, in some 10 sweeps of 5 n rows columns products: 256 x 256 take half a
/// second, 1024 x 1024 half a minute. InvalidArgument for other ranks, integers, numbers that are not finite, and
/// within a traced function.
SingularValues singular_values(const Tensor& x);

/// Say one of the two.
struct LowRankOptions {
  std::int64_t rank = 0;
  double energy = 0;  // the least rank that keeps this share of the sum of squares of the kernel, above 0, at most 1
  static constexpr auto ranges() { return std::array{Allowed::not_negative("rank"), Allowed::share("energy")}; }
};
/// Sequential{Dense(rank, without bias), Dense(units, activation)} with the nearest product; the layer's own name is
/// that of the second. The kernel's own rank, or all of the energy, computes the same up to rounding. It is smaller and
/// faster where rank * (inputs + units) is below inputs * units. Masks are not taken over. InvalidArgument for a layer
/// that is not built, unless one of the options is given, and for a rank outside of [1, min(inputs, units)].
Sequential low_rank(const Dense& layer, LowRankOptions options);
/// A copy of the model in which each Dense that gets smaller by it is replaced; what is within another Sequential or a
/// struct stays. A rank above what a layer has leaves it.
Sequential low_rank(const Sequential& model, LowRankOptions options);

}  // namespace gradus
