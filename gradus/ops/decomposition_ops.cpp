/// Rules of the primitives of decompositions. Gradients consist of ops, so they have gradients of every order. Decision
/// 415 has the reasons.
#include "gradus/ops/decomposition_ops.h"
#include <limits>
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/solve_ops.h"

namespace gradus {
namespace {

std::int64_t matrix_rows(const Shape& x) { return x[-2]; }
std::int64_t matrix_columns(const Shape& x) { return x[-1]; }
constexpr auto size_sum = dimension::add;
constexpr auto size_product = dimension::multiply;

void check_tall(std::string_view op, const Spec& x, bool tall) {
  const std::int64_t m = matrix_rows(x.shape), n = matrix_columns(x.shape);
  require(m < 0 || n < 0 || tall == (m >= n), op, ": tall=", tall ? "true" : "false", " does not fit ", x);
}

/// The batches of `x`, and for each one so many numbers.
Spec numbers_for_each(const Spec& x, std::int64_t numbers) {
  Spec out = x;
  out.shape.erase(-1);
  out.shape.set(-1, numbers);
  return out;
}
/// Batches of matrices are batches of rows of numbers.
int carried_to_numbers(int along) { return along < -2 ? along + 1 : 0; }
int carried_to_matrices(int along) { return along < -2 ? along : 0; }

Tensor plain_product(const Tensor& a, const Tensor& b) { return apply(Matmul{false, false}, a, b); }
Tensor transposed_product(const Tensor& a, const Tensor& b) { return apply(Matmul{true, false}, a, b); }
Tensor product_transposed(const Tensor& a, const Tensor& b) { return apply(Matmul{false, true}, a, b); }
Tensor as_row(const Tensor& x) { return expand_dims(x, -2); }
Tensor as_columns(const Tensor& x) { return expand_dims(x, -1); }
Tensor symmetric_part(const Tensor& x) { return (x + transpose(x)) * 0.5; }
Tensor antisymmetric(const Tensor& x) { return x - transpose(x); }
Tensor columns_between(const Tensor& x, std::int64_t begin, std::int64_t size) {
  return slice_within(x, -1, begin, size);
}
Tensor rows_between(const Tensor& x, std::int64_t begin, std::int64_t size) { return slice_within(x, -2, begin, size); }
/// x inverse(upper)'.
Tensor over_transposed(const Tensor& x, const Tensor& upper) {
  return transpose(apply(TriangularSolve{false}, upper, transpose(x)));
}
/// The symmetric matrix with this lower triangle.
Tensor from_lower(const Tensor& x) { return tril(x) + transpose(tril(x, -1)); }

/// True for columns of x that are 0: [..., 1, columns].
Tensor zero_columns(const Tensor& x) { return equal(reduce_sum(abs(x), {.axis = {-2}, .keepdims = true}), 0); }

/// Differences of values, as divisors of products of their vectors: where two are equal infinity on the diagonal and
/// where nothing depends on the vectors of either, so that nothing follows from them; else 0.
Tensor divisors(const Tensor& differences, const Tensor& unused) {
  const Tensor is_equal = equal(differences, 0),
               is_diagonal =
                   cast(eye(matrix_columns(differences.shape()), matrix_columns(differences.shape()), f32), boolean);
  const Tensor harmless = logical_or(logical_and(unused, transpose(unused)), is_diagonal);
  return where(
      is_equal,
      where(harmless, fill_like(differences, std::numeric_limits<double>::infinity()), zeros_like(differences)),
      differences);
}
/// Values as divisors of their own vectors' cotangents, in the same way.
Tensor divisors_of_columns(const Tensor& values, const Tensor& unused) {
  const Tensor row = as_row(values);
  return where(logical_and(equal(row, 0), unused), fill_like(row, std::numeric_limits<double>::infinity()), row);
}

/// The gradient by x of x = q r with a square r (Walter and Lehmann 2018).
Tensor gradient_of_qr(const Tensor& q, const Tensor& r, const Tensor& dq, const Tensor& dr) {
  const Tensor m = product_transposed(r, dr) - transposed_product(dq, q);
  return over_transposed(dq + plain_product(q, from_lower(m)), r);
}

}  // namespace

Tensor ArraysOf::vector(std::int64_t n) {
  const Tensor taken = slice_within(numbers_, -1, done_, n);
  done_ = size_sum(done_, n);
  return taken;
}
Tensor ArraysOf::matrix(std::int64_t m, std::int64_t n) {
  const Tensor taken = vector(size_product(m, n));
  Shape shape = taken.shape();
  shape.set(-1, m);
  shape.push_back(n);
  return reshape(taken, shape);
}

Tensor unit_lower(const Tensor& lower_upper) {
  const std::int64_t n = matrix_columns(lower_upper.shape());
  return tril(lower_upper, -1) + eye(n, n, lower_upper.dtype());
}

Spec Qr::infer(Specs in) const {
  check_operand_of_matrices(name, in, false);
  check_tall(name, in[0], tall);
  const std::int64_t m = matrix_rows(in[0].shape), n = matrix_columns(in[0].shape), k = tall && !full ? n : m;
  return numbers_for_each(in[0], size_product(k, size_sum(m, n)));
}
Tensors Qr::vjp(In in, const Tensor& y, const Tensor& dy) const {
  const Tensor& x = in[0];
  const std::int64_t m = matrix_rows(x.shape()), n = matrix_columns(x.shape()), k = tall && !full ? n : m;
  ArraysOf factors(y), cotangents(dy);
  const Tensor q = factors.matrix(m, k), r = factors.matrix(k, n);
  const Tensor dq = cotangents.matrix(m, k), dr = cotangents.matrix(k, n);
  if (m == n || (tall && !full)) return {gradient_of_qr(q, r, dq, dr)};
  if (tall) {
    // The columns behind the nth are any orthonormal ones that are orthogonal to those before; they move along.
    const std::int64_t rest = dimension::subtract(m, n);
    const Tensor first = columns_between(q, 0, n), moved = transposed_product(columns_between(dq, n, rest), first);
    return {gradient_of_qr(first, rows_between(r, 0, n),
                           columns_between(dq, 0, n) - plain_product(columns_between(q, n, rest), moved),
                           rows_between(dr, 0, n))};
  }
  const std::int64_t rest = dimension::subtract(n, m);
  const Tensor of_rest = columns_between(dr, m, rest);
  const Tensor of_first =
      gradient_of_qr(q, columns_between(r, 0, m), dq + product_transposed(columns_between(x, m, rest), of_rest),
                     columns_between(dr, 0, m));
  return {concat({of_first, plain_product(q, of_rest)}, -1)};
}
Tensor Qr::batch(In in, std::uint32_t, std::int64_t) const { return on_processor(*this, in[0]); }
int Qr::carries(Specs, int, int along) const { return carried_to_numbers(along); }

Spec Eigh::infer(Specs in) const {
  check_operand_of_matrices(name, in, true);
  const std::int64_t n = matrix_columns(in[0].shape);
  return numbers_for_each(in[0], vectors ? size_product(n, size_sum(n, 1)) : n);
}
/// With X = v' dv: v (diag(de) + X / (e_j - e_i)) v', made symmetric.
Tensors Eigh::vjp(In in, const Tensor& y, const Tensor& dy) const {
  const std::int64_t n = matrix_columns(in[0].shape());
  if (!vectors) {
    const Tensor pairs = on_processor(Eigh{true}, in[0]);
    const Tensor v = ArraysOf(pairs).matrix(n, n);
    return {product_transposed(v * as_row(dy), v)};
  }
  ArraysOf pairs(y), cotangents(dy);
  const Tensor v = pairs.matrix(n, n), e = pairs.vector(n);
  const Tensor dv = cotangents.matrix(n, n), de = cotangents.vector(n);
  const Tensor turned = transposed_product(v, dv) / divisors(as_row(e) - as_columns(e), zero_columns(dv));
  return {symmetric_part(product_transposed(plain_product(v, diag(de) + turned), v))};
}
Tensor Eigh::batch(In in, std::uint32_t, std::int64_t) const { return on_processor(*this, in[0]); }
int Eigh::carries(Specs, int, int along) const { return carried_to_numbers(along); }

Spec Svd::infer(Specs in) const {
  check_operand_of_matrices(name, in, false);
  check_tall(name, in[0], tall);
  const std::int64_t m = matrix_rows(in[0].shape), n = matrix_columns(in[0].shape), k = tall ? n : m;
  return numbers_for_each(in[0], vectors ? size_product(k, size_sum(size_sum(m, n), 1)) : k);
}
/// Townsend (2016): u (((u' du - du' u) s_j + s_i (v' dv - dv' v)) / (s_j^2 - s_i^2) + diag(ds)) v', and what leaves
/// the spaces of u and v.
Tensors Svd::vjp(In in, const Tensor& y, const Tensor& dy) const {
  const Shape& shape = in[0].shape();
  const std::int64_t m = matrix_rows(shape), n = matrix_columns(shape), k = tall ? n : m;
  if (!vectors) {
    const Tensor all = on_processor(Svd{tall, true}, in[0]);
    ArraysOf factors(all);
    const Tensor u = factors.matrix(m, k);
    factors.vector(k);
    return {product_transposed(u * as_row(dy), factors.matrix(n, k))};
  }
  ArraysOf factors(y), cotangents(dy);
  const Tensor u = factors.matrix(m, k), s = factors.vector(k), v = factors.matrix(n, k);
  const Tensor du = cotangents.matrix(m, k), ds = cotangents.vector(k), dv = cotangents.matrix(n, k);
  const Tensor row = as_row(s), column = as_columns(s), unused = logical_and(zero_columns(du), zero_columns(dv));
  const Tensor squares = divisors((row - column) * (row + column), unused);
  const Tensor turned = (antisymmetric(transposed_product(u, du)) / squares) * row +
                        column * (antisymmetric(transposed_product(v, dv)) / squares);
  Tensor dx = product_transposed(plain_product(u, diag(ds) + turned), v);
  if (m == n) return {dx};
  const Tensor& side = tall ? u : v;
  const Tensor outer = (tall ? du : dv) / divisors_of_columns(s, zero_columns(tall ? du : dv));
  const Tensor outside = outer - plain_product(side, transposed_product(side, outer));
  return {dx + (tall ? product_transposed(outside, v) : product_transposed(u, outside))};
}
Tensor Svd::batch(In in, std::uint32_t, std::int64_t) const { return on_processor(*this, in[0]); }
int Svd::carries(Specs, int, int along) const { return carried_to_numbers(along); }

Spec Pinv::infer(Specs in) const {
  check_operand_of_matrices(name, in, hermitian);
  Spec out = in[0];
  out.shape.set(-1, matrix_rows(in[0].shape));
  out.shape.set(-2, matrix_columns(in[0].shape));
  return out;
}
/// Golub and Pereyra (1973): dp = -p da p + p p' da' (1 - a p) + (1 - p a) da' p' p, at a constant rank.
Tensors Pinv::vjp(In in, const Tensor& p, const Tensor& dp) const {
  const Tensor a = hermitian ? from_lower(in[0]) : in[0], g = transpose(dp);
  const Tensor inner = product_transposed(transposed_product(p, dp), p);
  const Tensor left = g - plain_product(a, plain_product(p, g)), right = g - plain_product(plain_product(g, p), a);
  const Tensor da =
      product_transposed(plain_product(left, p), p) + transposed_product(p, plain_product(p, right)) - inner;
  return {hermitian ? symmetric_part(da) : da};
}
Tensor Pinv::batch(In in, std::uint32_t, std::int64_t) const { return on_processor(*this, in[0]); }
int Pinv::carries(Specs, int, int along) const { return carried_to_matrices(along); }

Spec Lu::infer(Specs in) const {
  check_operand_of_matrices(name, in, true);
  const std::int64_t n = matrix_columns(in[0].shape);
  return numbers_for_each(in[0], size_product(n, size_sum(n, 1)));
}
/// P' L'^-1 (the lower part of L' dL + the upper part of dU U') U'^-1.
Tensors Lu::vjp(In in, const Tensor& y, const Tensor& dy) const {
  const std::int64_t n = matrix_columns(in[0].shape());
  ArraysOf factors(y), cotangents(dy);
  const Tensor both = factors.matrix(n, n), order = factors.vector(n), d = cotangents.matrix(n, n);
  const Tensor lower = unit_lower(both), upper = triu(both);
  const Tensor inner = tril(transposed_product(lower, tril(d, -1)), -1) + triu(product_transposed(triu(d), upper));
  const Tensor permuted = over_transposed(apply(TriangularSolve{false}, transpose(lower), inner), upper);
  const Tensor places = equal(as_columns(order), cast(iota_along(1, 0, n, i32), both.dtype()));
  return {transposed_product(cast(places, both.dtype()), permuted)};
}
Tensor Lu::batch(In in, std::uint32_t, std::int64_t) const { return on_processor(*this, in[0]); }
int Lu::carries(Specs, int, int along) const { return carried_to_numbers(along); }

Spec MatrixExp::infer(Specs in) const {
  check_operand_of_matrices(name, in, true);
  return in[0];
}
/// The upper right part of the exponential of (x' dy; 0 x') (Higham 2008, section 3.2), which is linear in dy: a small
/// dy takes no further squarings.
Tensors MatrixExp::vjp(In in, const Tensor&, const Tensor& dy) const {
  const std::int64_t n = matrix_columns(in[0].shape());
  const Tensor x = transpose(in[0]);
  const Tensor norm = reduce_max(reduce_sum(abs(stop_gradient(dy)), {.axis = {-2}, .keepdims = true}),
                                 {.axis = {-1}, .keepdims = true});
  const Tensor scale = where(equal(norm, 0), fill_like(norm, 1), norm * 16);
  const Tensor upper = concat({x, dy / scale}, -1), lower = concat({zeros_like(x), x}, -1);
  const Tensor all = on_processor(MatrixExp{}, concat({upper, lower}, -2));
  return {columns_between(rows_between(all, 0, n), n, n) * scale};
}
Tensor MatrixExp::batch(In in, std::uint32_t, std::int64_t) const { return on_processor(*this, in[0]); }
int MatrixExp::carries(Specs, int, int along) const { return carried_to_matrices(along); }

}  // namespace gradus
