/// Matrix products in other forms, and small dense linear algebra.
#pragma once
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Matrix-vector product. a: T[batches..., m, k], b: T[batches..., k] -> T[batches..., m].
Tensor matvec(const Tensor& a, const Tensor& b);
/// Sums over the last `axes` dimensions of a and the first of b: [outer..., summed...] x [summed..., others...] ->
/// [outer..., others...].
Tensor tensordot(const Tensor& a, const Tensor& b, int axes);
/// Sums over dimension axes_a[i] of a and axes_b[i] of b, which agree. The remaining dimensions of a come first, then
/// those of b.
Tensor tensordot(const Tensor& a, const Tensor& b, const std::vector<int>& axes_a, const std::vector<int>& axes_b);

/// Options of matmul.
struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;  // exchange the last two dimensions first
};
/// matmul of operands whose last two dimensions are exchanged first, as the options say.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options);

/// Options of gemm.
struct GemmOptions {
  double alpha = 1, beta = 1;                     // factors of the product and of c
  bool transpose_a = false, transpose_b = false;  // exchange the dimensions of a matrix first
  static constexpr auto ranges() { return std::array{Allowed::finite("alpha beta")}; }
};
/// alpha * a b + beta * c for matrices; c broadcasts to the product. For integers alpha and beta must be whole.
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options = {});
Tensor gemm(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options = {});

/// Determinants of x: T[..., n, n] -> T[...], T floating; 1 for n = 0. The gradient is the matrix of cofactors, also
/// for singular matrices. For singular matrices, gradients of higher order are right up to n = 5, and NaN or infinite
/// beyond.
Tensor det(const Tensor& x);
/// Inverse matrices of x: T[..., n, n], T floating. Infinite or NaN where x is singular.
Tensor inverse(const Tensor& x);

namespace detail::inline rooms {
/// NumPy's matmul: matrices as in matmul. A vector a counts as one row, a vector b as one column; the result lacks that
/// dimension.
Tensor numpy_matmul(const Tensor& a, const Tensor& b);
}  // namespace detail::inline rooms

}  // namespace gradus
