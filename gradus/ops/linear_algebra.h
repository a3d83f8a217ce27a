/// Products in other forms, and small dense linear algebra.
#pragma once
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// a: T[batches..., m, k], b: T[batches..., k] -> T[batches..., m].
Tensor matvec(const Tensor& a, const Tensor& b);
/// Sums over the last `axes` dimensions of a and the first of b: [outer..., summed...] x [summed..., others...] ->
/// [outer..., others...].
Tensor tensordot(const Tensor& a, const Tensor& b, int axes);
/// Sums over dimension axes_a[i] of a and axes_b[i] of b, which agree; those that are left follow each other.
Tensor tensordot(const Tensor& a, const Tensor& b, const std::vector<int>& axes_a, const std::vector<int>& axes_b);

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
/// matmul of operands whose last two dimensions are exchanged first.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options);

struct GemmOptions {
  double alpha = 1, beta = 1;
  bool transpose_a = false, transpose_b = false;
  static constexpr auto ranges() { return std::array{Allowed::finite("alpha beta")}; }
};
/// alpha * a b + beta * c of matrices, c broadcast to the product. Of integers alpha and beta must be whole.
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options = {});
Tensor gemm(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options = {});

/// Determinants of x: T[..., n, n] -> T[...], T floating; 1 of n = 0. The gradient is the matrix of cofactors: up to
/// n = 5 it is made of determinants, so it is right for singular matrices too, in every order; beyond it is
/// det(x) * inverse(x)', NaN or infinite where x is singular.
Tensor det(const Tensor& x);
/// x: T[..., n, n], T floating. Infinite or NaN where x is singular.
Tensor inverse(const Tensor& x);

// For the rooms of the library.

/// NumPy's matmul: matrices as matmul; a vector counts as one row of a, or one column of b, which the result lacks.
Tensor numpy_matmul(const Tensor& a, const Tensor& b);

/// Of small matrices, by elimination with row exchanges: a primitive since which rows are exchanged depends on data.
struct Det {
  static constexpr auto name = "det";
  static constexpr auto library_kernel = "det";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
struct Inverse {
  static constexpr auto name = "inverse";
  static constexpr auto library_kernel = "inverse";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

}  // namespace gradus
