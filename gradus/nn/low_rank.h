/// Low-rank factorization: one Dense becomes two thin ones, whose product is the nearest to its kernel in the sum of
/// squares (Eckart and Young 1936).
#pragma once
#include <cstdint>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"
#include "gradus/nn/layers.h"

namespace gradus {

/// A singular value decomposition x = left diag(values) right: singular values descending, [n]; left: [rows, n], right:
/// [n, columns], n the smaller extent. Columns of `left` and rows of `right` are orthonormal where values are above 0.
struct SingularValues {
  Tensor values, left, right;  // f64
};
/// The singular value decomposition of a matrix of floats, on the host in f64 by one-sided Jacobi rotations (Hestenes
/// 1958; Demmel and Veselic 1992). Every value is exact to about 1e-15 of the largest. It takes some 10 sweeps of 5 n
/// rows columns products: half a second for 256 x 256, half a minute for 1024 x 1024. InvalidArgument for other ranks,
/// integers, numbers that are not finite, and within a traced function.
SingularValues singular_values(const Tensor& x);

/// Options of low_rank: give one of the two.
struct LowRankOptions {
  std::int64_t rank = 0;  // number of singular values to keep
  double energy = 0;  // share of the kernel's sum of squares that the least sufficient rank keeps, above 0, at most 1
  static constexpr auto ranges() { return std::array{Allowed::not_negative("rank"), Allowed::share("energy")}; }
};
/// Sequential{Dense(rank, without bias), Dense(units, activation)} with the nearest product. The second has the layer's
/// own name. With the kernel's own rank, or all of the energy, it computes the same up to rounding. It is smaller and
/// faster if rank * (inputs + units) is below inputs * units. Masks are not taken over. InvalidArgument for a layer
/// that is not built, unless one of the options is given, and for a rank outside of [1, min(inputs, units)].
Sequential low_rank(const Dense& layer, LowRankOptions options);
/// A copy of the model in which each Dense that gets smaller is factorized. Layers within another Sequential or a
/// struct stay. A rank above a layer's own leaves that layer.
Sequential low_rank(const Sequential& model, LowRankOptions options);

}  // namespace gradus
