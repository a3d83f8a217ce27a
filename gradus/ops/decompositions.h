/// Decompositions of dense matrices, T[..., m, n] with T floating, and functions that follow from them. Narrow floats
/// are computed in f32. Gradients of every order, where they exist. If singular values or eigenvalues repeat exactly,
/// their vectors are not unique: a loss that depends on the vectors has gradients that are NaN or infinite; those of a
/// loss of the values alone are right. A matrix with an element that is NaN or infinite gives NaN. The bits are the
/// same on any number of threads and with every instruction set. For devices of plugins the processor computes them.
///
/// Errors are those of backward stable algorithms: products of the factors differ from the matrix, and orthogonal
/// factors from orthogonal ones, by a small multiple of n epsilon, relative to the norm.
#pragma once
#include <array>
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of qr.
struct QrOptions {
  bool full_matrices = false;  // all m columns of q, and m rows of r
};
/// Result of qr: x = q r.
struct QrFactors {
  Tensor q, r;  // [..., m, k] with orthonormal columns, [..., k, n] upper triangular; k = min(m, n), or m if full
};
/// QR by reflections. Signs are LAPACK's: the diagonal of r is not made positive. The gradient needs a regular r; it is
/// infinite or NaN for matrices of deficient rank.
QrFactors qr(const Tensor& x, QrOptions options = {});

/// Result of lu.
struct LuFactors {
  Tensor lu;  // [..., n, n]: U, and below the diagonal L, whose diagonal is 1
  Tensor p;   // [..., n]: row i of L U is row p[i] of x
};
/// LU with exchanges of rows, of square matrices. InvalidArgument unless `output_idx_type` is an integer type. The
/// gradient is infinite or NaN for singular matrices.
LuFactors lu(const Tensor& x, DType output_idx_type);
LuFactors lu(const Tensor& x);
/// The solution of x y = rhs from the factors of x: rhs: [..., n, k].
Tensor lu_solve(const Tensor& lower_upper, const Tensor& perm, const Tensor& rhs);
/// The matrix with these factors.
Tensor lu_reconstruct(const Tensor& lower_upper, const Tensor& perm);

/// Result of eigh.
struct Eigenpairs {
  Tensor e, v;  // values [..., n] in ascending order; vectors [..., n, n], a column each
};
/// Eigenvalues and orthonormal eigenvectors of symmetric matrices; only the lower triangle is read. The gradient is
/// symmetric.
Eigenpairs eigh(const Tensor& x);
/// The eigenvalues alone, in ascending order: [..., n].
Tensor eigvalsh(const Tensor& x);

/// Options of svd.
struct SvdOptions {
  bool full_matrices = false;  // square u and v
  bool compute_uv = true;      // else u and v are empty
};
/// Result of svd: x = u diag(s) v', as in TensorFlow; NumPy and JAX give v' instead of v.
struct SvdFactors {
  Tensor s, u, v;  // [..., k] in descending order; [..., m, k] and [..., n, k], or [..., m, m] and [..., n, n] if full
};
/// Singular values and vectors.
SvdFactors svd(const Tensor& x, SvdOptions options = {});
/// The singular values alone, in descending order: [..., min(m, n)].
Tensor svdvals(const Tensor& x);

/// Options of pinv.
struct PinvOptions {
  std::optional<double> rcond = {};  // singular values up to rcond times the largest one count as 0; none: 10 max(m, n)
                                     // epsilon
  bool hermitian = false;            // by eigenvalues of a symmetric matrix, whose lower triangle is read
  /// The ranges of its numbers.
  static constexpr auto ranges() { return std::array{Allowed::not_negative("rcond")}; }
};
/// The pseudoinverse (Moore, Penrose): [..., m, n] -> [..., n, m]. Its gradient is right where the rank of the matrix
/// is locally constant.
Tensor pinv(const Tensor& a, PinvOptions options = {});

/// Options of matrix_rank.
struct MatrixRankOptions {
  std::optional<double> tol = {};  // singular values above it count; none: max(m, n) epsilon times the largest one
  /// The ranges of its numbers.
  static constexpr auto ranges() { return std::array{Allowed::not_negative("tol")}; }
};
/// The number of singular values that are not 0, as i32: [..., m, n] -> [...]. No gradient.
Tensor matrix_rank(const Tensor& a, MatrixRankOptions options = {});

/// Options of lstsq.
struct LstsqOptions {
  double l2_regularizer = 0;         // the factor of |x|^2
  bool fast = true;                  // by the normal equations; else by singular values, for any rank
  std::optional<double> rcond = {};  // unless fast: as in pinv
  /// The ranges of its numbers.
  static constexpr auto ranges() { return std::array{Allowed::not_negative("l2_regularizer rcond")}; }
};
/// Least squares: the x that minimises |matrix x - rhs|^2 + l2_regularizer |x|^2, the shortest if there are several:
/// [..., m, n], [..., m, k] -> [..., n, k]. Unless `fast`, matrices may have any rank and shape.
Tensor lstsq(const Tensor& matrix, const Tensor& rhs, const LstsqOptions& options);

/// The exponential of square matrices, the sum of x^k / k!: [..., n, n]. By Padé's approximants, scaling and squaring
/// (Higham 2005).
Tensor matrix_exp(const Tensor& x);
/// TensorFlow's name of matrix_exp.
inline Tensor expm(const Tensor& x) { return matrix_exp(x); }

}  // namespace gradus
