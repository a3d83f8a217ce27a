/// Decompositions by their primitives.
#include "gradus/ops/decompositions.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/decomposition_ops.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index_types.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/solve.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

void require_matrices_of(std::string_view op, const Tensor& x, bool square) {
  require_floating(x, op);
  const Shape& shape = x.shape();
  require(shape.rank() >= 2 && (!square || shape[-1] == shape[-2]), op, ": expected ",
          square ? "square matrices [..., n, n]" : "matrices [..., m, n]", ", got ", x.spec());
}
bool is_tall_matrix(const Tensor& x) { return SizeChoice::decide(x.shape()[-2] >= x.shape()[-1]); }

/// Narrow floats in f32.
template <class Op> Tensor computed(const Op& op, const Tensor& x) { return on_processor(op, widened(x)); }

/// q: [..., m, k] with all m columns.
Tensor completed(const Tensor& q) {
  const std::int64_t m = q.shape()[-2], k = q.shape()[-1];
  if (m == k) return q;
  const Tensor full = qr(q, {.full_matrices = true}).q;
  return concat({q, slice_within(full, -1, k, dimension::subtract(m, k))}, -1);
}

/// The greater of both sizes, which may be open, as a number beside the values of x.
Tensor greater_size(const Tensor& x, DType dtype) {
  return reduce_sum(ones({is_tall_matrix(x) ? x.shape()[-2] : x.shape()[-1]}, dtype));
}

LuFactors lu_as(const Tensor& x, DType output_idx_type) {
  require_matrices_of("lu", x, true);
  const std::int64_t n = x.shape()[-1];
  index_type("lu", output_idx_type, n);
  ArraysOf arrays(computed(Lu{}, x));
  const Tensor both = cast(arrays.matrix(n, n), x.dtype());
  return {both, cast(arrays.vector(n), output_idx_type)};
}

void check_factors(std::string_view op, const Tensor& lower_upper, const Tensor& perm) {
  require_matrices_of(op, lower_upper, true);
  Shape wanted = lower_upper.shape();
  wanted.erase(-1);
  require(is_integer(perm.dtype()) && perm.shape() == wanted, op, ": the factors are ", lower_upper.spec(),
          ", the permutation ", perm.spec(), "; expected [..., n, n] and integers [..., n]");
}
/// Row i of the result is row places[i] of x.
Tensor rows_in_order(const Tensor& x, const Tensor& places) {
  return take_along_axis(x, broadcast_to(expand_dims(places, -1), x.shape()), -2);
}
}  // namespace

QrFactors qr(const Tensor& x, QrOptions options) {
  require_matrices_of("qr", x, false);
  const bool tall = is_tall_matrix(x);
  const std::int64_t m = x.shape()[-2], n = x.shape()[-1], k = tall && !options.full_matrices ? n : m;
  ArraysOf arrays(computed(Qr{tall, options.full_matrices}, x));
  const Tensor q = cast(arrays.matrix(m, k), x.dtype());
  return {q, cast(arrays.matrix(k, n), x.dtype())};
}

LuFactors lu(const Tensor& x, DType output_idx_type) { return lu_as(x, output_idx_type); }
LuFactors lu(const Tensor& x) { return lu_as(x, i32); }

Tensor lu_solve(const Tensor& lower_upper, const Tensor& perm, const Tensor& rhs) {
  check_factors("lu_solve", lower_upper, perm);
  Shape wanted = lower_upper.shape();
  if (rhs.shape().rank() > 0) wanted.set(-1, rhs.shape().back());
  require(rhs.dtype() == lower_upper.dtype() && rhs.shape() == wanted, "lu_solve: the factors are ", lower_upper.spec(),
          ", the right side ", rhs.spec(), "; expected [..., n, n] and [..., n, k] of one dtype");
  const Tensor middle = triangular_solve(unit_lower(lower_upper), rows_in_order(rhs, perm));
  return triangular_solve(lower_upper, middle, {.lower = false});
}

Tensor lu_reconstruct(const Tensor& lower_upper, const Tensor& perm) {
  check_factors("lu_reconstruct", lower_upper, perm);
  return rows_in_order(matmul(unit_lower(lower_upper), triu(lower_upper)), argsort(perm));
}

Eigenpairs eigh(const Tensor& x) {
  require_matrices_of("eigh", x, true);
  const std::int64_t n = x.shape()[-1];
  ArraysOf arrays(computed(Eigh{true}, x));
  const Tensor v = cast(arrays.matrix(n, n), x.dtype());
  return {cast(arrays.vector(n), x.dtype()), v};
}

Tensor eigvalsh(const Tensor& x) {
  require_matrices_of("eigvalsh", x, true);
  return cast(computed(Eigh{false}, x), x.dtype());
}

SvdFactors svd(const Tensor& x, SvdOptions options) {
  if (!options.compute_uv) return {svdvals(x), {}, {}};
  require_matrices_of("svd", x, false);
  const bool tall = is_tall_matrix(x);
  const std::int64_t m = x.shape()[-2], n = x.shape()[-1], k = tall ? n : m;
  ArraysOf arrays(computed(Svd{tall, true}, x));
  const Tensor u = cast(arrays.matrix(m, k), x.dtype()), s = cast(arrays.vector(k), x.dtype()),
               v = cast(arrays.matrix(n, k), x.dtype());
  if (!options.full_matrices) return {s, u, v};
  return {s, completed(u), completed(v)};
}

Tensor svdvals(const Tensor& x) {
  require_matrices_of("svdvals", x, false);
  return cast(computed(Svd{is_tall_matrix(x), false}, x), x.dtype());
}

Tensor pinv(const Tensor& a, PinvOptions options) {
  check_options("pinv", options);
  require_matrices_of("pinv", a, options.hermitian);
  return cast(computed(Pinv{options.rcond.value_or(Pinv::by_sizes), options.hermitian}, a), a.dtype());
}

Tensor matrix_rank(const Tensor& a, MatrixRankOptions options) {
  check_options("matrix_rank", options);
  require_matrices_of("matrix_rank", a, false);
  const Tensor s = svdvals(widened(a));
  const auto count = [&](const Tensor& is_counted) { return reduce_sum(cast(is_counted, i32), {.axis = {-1}}); };
  if (options.tol) return count(s > *options.tol);
  const Tensor largest = reduce_max(s, {.axis = {-1}, .keepdims = true});
  return count(s > largest * (greater_size(a, s.dtype()) * epsilon_of(s.dtype())));
}

Tensor lstsq(const Tensor& matrix, const Tensor& rhs, const LstsqOptions& options) {
  check_options("lstsq", options);
  if (options.fast) return lstsq(matrix, rhs, options.l2_regularizer);
  require_floating(matrix, rhs, "lstsq");
  require(matrix.shape().rank() >= 2 && rhs.shape().rank() == matrix.shape().rank() &&
              rhs.shape()[-2] == matrix.shape()[-2],
          "lstsq: the matrix is ", matrix.spec(), ", the right side ", rhs.spec(),
          "; expected [..., m, n] and [..., m, k]");
  Tensor a = widened(matrix), b = widened(rhs);
  if (options.l2_regularizer > 0) {  // rows of the regularizer below
    const std::int64_t n = a.shape()[-1];
    Shape of_unit = a.shape(), of_zeros = b.shape();
    of_unit.set(-2, n), of_zeros.set(-2, n);
    a = concat({a, broadcast_to(eye(n, n, a.dtype()) * sqrt(fill({}, options.l2_regularizer, a.dtype())), of_unit)},
               -2);
    b = concat({b, zeros(of_zeros, b.dtype())}, -2);
  }
  return cast(matmul(pinv(a, {.rcond = options.rcond}), b), matrix.dtype());
}

Tensor matrix_exp(const Tensor& x) {
  require_matrices_of("matrix_exp", x, true);
  return cast(computed(MatrixExp{}, x), x.dtype());
}

}  // namespace gradus
