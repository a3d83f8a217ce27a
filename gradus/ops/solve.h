/// Systems of linear equations and factorizations of small dense matrices, T[..., n, n] with T floating; narrow floats
/// are computed in f32. Batches broadcast. Gradients of every order.
#pragma once
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

struct SolveOptions {
  bool adjoint = false;  // of the transposed matrix
};
/// x with matrix x = rhs, by elimination with row exchanges: [..., n, n], [..., n, k] -> [..., n, k]. Infinite or NaN
/// of a singular matrix.
Tensor solve(const Tensor& matrix, const Tensor& rhs, SolveOptions options = {});

struct TriangularSolveOptions {
  bool lower = true;     // which triangle is read; the other one counts as 0
  bool adjoint = false;  // of the transposed matrix
};
/// The same of a triangular matrix.
Tensor triangular_solve(const Tensor& matrix, const Tensor& rhs, TriangularSolveOptions options = {});

/// The lower triangular L with L L' = x, x symmetric and positive definite: only its lower triangle is read. NaN where
/// it is not positive definite. The gradient is symmetric.
Tensor cholesky(const Tensor& x);
/// x with L L' x = rhs.
Tensor cholesky_solve(const Tensor& chol, const Tensor& rhs);
/// The logarithm of the determinant of a symmetric positive definite matrix: [..., n, n] -> [...].
Tensor logdet(const Tensor& matrix);

struct SignAndLogDet {
  Tensor sign, log_abs_determinant;  // [...]; 0 and -infinity of a singular matrix
};
/// The sign of the determinant and the logarithm of its size.
SignAndLogDet slogdet(const Tensor& x);

/// x that makes |matrix x - rhs|^2 + l2_regularizer |x|^2 least: [..., m, n], [..., m, k] -> [..., n, k], m >= n; of
/// m < n the one with the least |x|. By the normal equations, so matrices must have full rank and be well conditioned.
Tensor lstsq(const Tensor& matrix, const Tensor& rhs, double l2_regularizer = 0);

/// The last two dimensions exchanged; of real matrices adjoint is the same.
Tensor matrix_transpose(const Tensor& x);
Tensor adjoint(const Tensor& x);
/// x [n...] -> [n..., n...] with x on the diagonal, zeros elsewhere, and back.
Tensor tensor_diag(const Tensor& diagonal);
Tensor tensor_diag_part(const Tensor& x);

// For the rooms of the library.

/// matrix: T[..., n, n], rhs: T[..., n, k], batches alike, T f32 or f64. Primitives since each element needs those
/// before it, and which rows are exchanged depends on data.
struct Solve {
  static constexpr auto name = "solve";
  static constexpr auto library_kernel = "solve";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
struct TriangularSolve {
  static constexpr auto name = "triangular_solve";
  static constexpr auto library_kernel = "triangular_solve";
  static constexpr auto takes = Takes::floats;
  bool lower = true;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
struct Cholesky {
  static constexpr auto name = "cholesky";
  static constexpr auto library_kernel = "cholesky";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

}  // namespace gradus
