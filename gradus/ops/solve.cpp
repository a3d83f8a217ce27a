/// Gradients of solutions are solutions: with y = A^-1 b, db = A^-T dy and dA = -db y'. Decision 388 has the reasons.
#include "gradus/ops/solve.h"
#include "gradus/ops/solve_ops.h"
#include <numbers>
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/linear_algebra_ops.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

Spec spec_of_solution(std::string_view op, Specs in) {
  require(in.size() == 2, op, ": expected 2 operands, got ", in.size());
  require_matrices(op, in[0], true);
  Shape wanted = in[0].shape;
  if (in[1].shape.rank() > 0) wanted.set(-1, in[1].shape.back());
  require(in[1].dtype == in[0].dtype && in[1].shape == wanted, op, ": the matrix is ", in[0], ", the right side ",
          in[1], "; expected [..., n, n] and [..., n, k] of one dtype");
  return in[1];
}

/// a' b and a b' of batches of matrices.
Tensor product(const Tensor& a, const Tensor& b) { return apply(Matmul{false, false}, a, b); }
Tensor product_with_transposed(const Tensor& a, const Tensor& b) { return apply(Matmul{false, true}, a, b); }

template <class Op> Tensor batched(const Op& op, In in, std::uint32_t mask, std::int64_t n) {
  Tensors rows(in.begin(), in.end());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!has_rows(mask, i)) rows[i] = repeat_rows(rows[i], n);
  return gradus::detail::apply(op, In(rows));
}

/// A column of the right side is a system of its own.
int carried_by_solution(int operand, int along) { return along < -2 || (operand == 1 && along == -1) ? along : 0; }

/// Both with the batches that they broadcast to, computed by `op` in at least f32.
template <class Op> Tensor solved(std::string_view name, const Op& op, const Tensor& matrix, const Tensor& rhs) {
  require_floating(matrix, rhs, name);
  require(matrix.shape().rank() >= 2 && rhs.shape().rank() >= 2, name, ": the matrix is ", matrix.spec(),
          ", the right side ", rhs.spec(), "; expected [..., n, n] and [..., n, k]");
  const auto batches = [](const Tensor& x) {
    Shape shape = x.shape();
    shape.erase(-1);
    shape.erase(-1);
    return shape;
  };
  const Shape joint = broadcast_shape(batches(matrix), batches(rhs), name);
  const auto spread = [&](const Tensor& x) {
    Shape shape = joint;
    shape.push_back(x.shape()[-2]);
    shape.push_back(x.shape()[-1]);
    return cast(broadcast_to(x, shape), computed_in(x.dtype()));
  };
  return cast(apply(op, spread(matrix), spread(rhs)), rhs.dtype());
}

}  // namespace

Spec Solve::infer(Specs in) const { return spec_of_solution(name, in); }
Tensors Solve::vjp(In in, const Tensor& y, const Tensor& dy) const {
  const Tensor g = gradus::detail::apply(*this, transpose(in[0]), dy);
  return {-product_with_transposed(g, y), g};
}
Tensor Solve::batch(In in, std::uint32_t mask, std::int64_t n) const { return batched(*this, in, mask, n); }
int Solve::carries(Specs, int operand, int along) const { return carried_by_solution(operand, along); }

Spec TriangularSolve::infer(Specs in) const { return spec_of_solution(name, in); }
Tensors TriangularSolve::vjp(In in, const Tensor& y, const Tensor& dy) const {
  const Tensor g = gradus::detail::apply(TriangularSolve{!lower}, transpose(in[0]), dy);
  const Tensor full = -product_with_transposed(g, y);
  return {lower ? tril(full) : triu(full), g};
}
Tensor TriangularSolve::batch(In in, std::uint32_t mask, std::int64_t n) const { return batched(*this, in, mask, n); }
int TriangularSolve::carries(Specs, int operand, int along) const { return carried_by_solution(operand, along); }

Spec Cholesky::infer(Specs in) const {
  check_operand_of_matrices(name, in, true);
  return in[0];
}
/// With P the lower triangle of L' dL, its diagonal halved: L^-T P L^-1, made symmetric (Murray 2016).
Tensors Cholesky::vjp(In, const Tensor& y, const Tensor& dy) const {
  const Tensor whole = tril(product(transpose(y), dy));
  const Tensor p = (whole + tril(whole, -1)) * 0.5;
  const Tensor upper = transpose(y);
  const Tensor left = gradus::detail::apply(TriangularSolve{false}, upper, p);
  const Tensor both = gradus::detail::apply(TriangularSolve{false}, upper, transpose(left));
  return {(both + transpose(both)) * 0.5};
}
Tensor Cholesky::batch(In in, std::uint32_t, std::int64_t) const { return gradus::detail::apply(*this, in); }
int Cholesky::carries(Specs, int, int along) const { return along < -2 ? along : 0; }

Tensor solve(const Tensor& matrix, const Tensor& rhs, SolveOptions options) {
  return solved("solve", Solve{}, options.adjoint ? matrix_transpose(matrix) : matrix, rhs);
}

Tensor triangular_solve(const Tensor& matrix, const Tensor& rhs, TriangularSolveOptions options) {
  return solved("triangular_solve", TriangularSolve{options.lower != options.adjoint},
                options.adjoint ? matrix_transpose(matrix) : matrix, rhs);
}

Tensor cholesky(const Tensor& x) {
  require_floating(x, "cholesky");
  return cast(apply(Cholesky{}, widened(x)), x.dtype());
}

Tensor cholesky_solve(const Tensor& chol, const Tensor& rhs) {
  return triangular_solve(chol, triangular_solve(chol, rhs), {.adjoint = true});
}

Tensor logdet(const Tensor& matrix) {
  require_floating(matrix, "logdet");
  const Tensor factor = apply(Cholesky{}, widened(matrix));
  return cast(reduce_sum(log(diag_part(factor)), {.axis = {-1}}) * 2, matrix.dtype());
}

SignAndLogDet slogdet(const Tensor& x) {
  require_floating(x, "slogdet");
  const std::vector<Tensor> scaled = unstack(apply(ScaledDet{}, widened(x)), -1);
  const Tensor size = log(abs(scaled[0])) + scaled[1] * std::numbers::ln2;
  return {cast(sign(scaled[0]), x.dtype()), cast(size, x.dtype())};
}

Tensor lstsq(const Tensor& matrix, const Tensor& rhs, double l2_regularizer) {
  require_floating(matrix, rhs, "lstsq");
  require(matrix.shape().rank() >= 2 && rhs.shape().rank() == matrix.shape().rank() && l2_regularizer >= 0,
          "lstsq: the matrix is ", matrix.spec(), ", the right side ", rhs.spec(), ", l2_regularizer ", l2_regularizer,
          "; expected [..., m, n], [..., m, k] and no negative number");
  const DType t = computed_in(matrix.dtype());
  const Tensor a = cast(matrix, t), b = cast(rhs, t), transposed = transpose(a);
  const bool is_tall = SizeChoice::decide(matrix.shape()[-2] >= matrix.shape()[-1]);
  const Tensor square = is_tall ? matmul(transposed, a) : matmul(a, transposed);
  const Tensor regular = square + eye(square.shape().back(), t) * l2_regularizer;
  const Tensor factor = cholesky(regular);
  const Tensor x =
      is_tall ? cholesky_solve(factor, matmul(transposed, b)) : matmul(transposed, cholesky_solve(factor, b));
  return cast(x, matrix.dtype());
}

Tensor matrix_transpose(const Tensor& x) {
  require(x.shape().rank() >= 2, "matrix_transpose: expected matrices [..., rows, columns], got ", x.spec());
  return transpose(x);
}
Tensor adjoint(const Tensor& x) { return matrix_transpose(x); }

Tensor tensor_diag(const Tensor& diagonal) {
  const Shape& shape = diagonal.shape();
  Shape twice = shape;
  for (const std::int64_t n : shape) twice.push_back(n);
  return reshape(diag(reshape(diagonal, {shape.size()})), twice);
}

Tensor tensor_diag_part(const Tensor& x) {
  const int half = x.shape().rank() / 2;
  Shape first;
  for (int i = 0; i < half; ++i) {
    require(x.shape()[i] == x.shape()[half + i], "tensor_diag_part: expected [n..., n...], got ", x.spec());
    first.push_back(x.shape()[i]);
  }
  require(x.shape().rank() == 2 * half && half > 0, "tensor_diag_part: expected [n..., n...], got ", x.spec());
  return reshape(diag_part(reshape(x, {first.size(), first.size()})), first);
}

}  // namespace gradus
