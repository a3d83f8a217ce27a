/// Linear systems and factorizations of dense matrices, T[..., n, n] with T floating. Narrow floats are computed
/// in f32. Batches broadcast. Gradients of every order.
#pragma once
#include <optional>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of solve.
struct SolveOptions {
  bool adjoint = false;  // solve with the transposed matrix
};
/// The solution x of matrix x = rhs, by elimination with row exchanges: [..., n, n], [..., n, k] -> [..., n, k].
/// Infinite or NaN for a singular matrix.
Tensor solve(const Tensor& matrix, const Tensor& rhs, SolveOptions options = {});

/// Options of triangular_solve.
struct TriangularSolveOptions {
  bool lower = true;     // the triangle that is read; the other one counts as 0
  bool adjoint = false;  // solve with the transposed matrix
};
/// The solution x of matrix x = rhs for a triangular matrix: [..., n, n], [..., n, k] -> [..., n, k].
Tensor triangular_solve(const Tensor& matrix, const Tensor& rhs, TriangularSolveOptions options = {});

/// The Cholesky factor: lower triangular L with L L' = x. x is symmetric and positive definite; only its lower triangle
/// is read. NaN where it is not positive definite. The gradient is symmetric.
Tensor cholesky(const Tensor& x);
/// The solution x of L L' x = rhs, with the Cholesky factor L.
Tensor cholesky_solve(const Tensor& chol, const Tensor& rhs);
/// Logarithm of the determinant of a symmetric positive definite matrix: [..., n, n] -> [...].
Tensor logdet(const Tensor& matrix);

/// Result of slogdet.
struct SignAndLogDet {
  Tensor sign, log_abs_determinant;  // [...]; 0 and -infinity for a singular matrix
};
/// Sign of the determinant, and logarithm of its absolute value.
SignAndLogDet slogdet(const Tensor& x);

/// Least squares: the x that minimises |matrix x - rhs|^2 + l2_regularizer |x|^2: [..., m, n], [..., m, k] -> [..., n,
/// k], m >= n. For m < n the solution with the least |x|. By the normal equations, so matrices must have full rank and
/// be well conditioned.
Tensor lstsq(const Tensor& matrix, const Tensor& rhs, double l2_regularizer = 0);

/// Exchanges the last two dimensions.
Tensor matrix_transpose(const Tensor& x);
/// The adjoint; of real matrices, the transpose.
Tensor adjoint(const Tensor& x);
/// [n...] -> [n..., n...], with the elements on the diagonal and zeros elsewhere.
Tensor tensor_diag(const Tensor& diagonal);
/// Inverse of tensor_diag: [n..., n...] -> [n...].
Tensor tensor_diag_part(const Tensor& x);

}  // namespace gradus
